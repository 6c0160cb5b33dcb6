package kubectl

import (
	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/apiresources"
	"bonsai/pkg/kubectl/apiversions"
	"bonsai/pkg/kubectl/attach"
	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/clusterinfo"
	"bonsai/pkg/kubectl/completion"
	"bonsai/pkg/kubectl/exec"
	"bonsai/pkg/kubectl/get"
	"bonsai/pkg/kubectl/logs"
	"bonsai/pkg/kubectl/portforward"
	"bonsai/pkg/kubectl/rollout"
	"bonsai/pkg/kubectl/version"
	"bonsai/pkg/kubectl/wait"
)

// group is a section of the help.
type group struct {
	id, title string
	commands  []func(*cli.Factory, cli.IOStreams) *cobra.Command
}

// groups lists every command in the order of the help.
func groups() []group {
	type cmds = []func(*cli.Factory, cli.IOStreams) *cobra.Command
	return []group{
		{"beginner", "Basic Commands (Beginner):", cmds{}},
		{"intermediate", "Basic Commands (Intermediate):", cmds{get.NewCommand}},
		{"deploy", "Deploy Commands:", cmds{rollout.NewCommand}},
		{"management", "Cluster Management Commands:", cmds{clusterinfo.NewCommand}},
		{"debugging", "Troubleshooting and Debugging Commands:", cmds{logs.NewCommand, attach.NewCommand, exec.NewCommand, portforward.NewCommand}},
		{"advanced", "Advanced Commands:", cmds{wait.NewCommand}},
		{"settings", "Settings Commands:", cmds{completion.NewCommand}},
		{"other", "Other Commands:", cmds{apiversions.NewCommand, version.NewCommand, apiresources.NewCommand}},
	}
}

func addGroups(root *cobra.Command, f *cli.Factory, streams cli.IOStreams) {
	for _, g := range groups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, newCommand := range g.commands {
			c := newCommand(f, streams)
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
}
