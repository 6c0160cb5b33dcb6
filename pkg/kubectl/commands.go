package kubectl

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/annotate"
	"bonsai/pkg/kubectl/apiresources"
	"bonsai/pkg/kubectl/apiversions"
	"bonsai/pkg/kubectl/apply"
	"bonsai/pkg/kubectl/attach"
	"bonsai/pkg/kubectl/auth"
	"bonsai/pkg/kubectl/autoscale"
	"bonsai/pkg/kubectl/certificate"
	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/clusterinfo"
	"bonsai/pkg/kubectl/completion"
	"bonsai/pkg/kubectl/config"
	"bonsai/pkg/kubectl/cp"
	"bonsai/pkg/kubectl/create"
	"bonsai/pkg/kubectl/debug"
	"bonsai/pkg/kubectl/delete"
	"bonsai/pkg/kubectl/describe"
	"bonsai/pkg/kubectl/diff"
	"bonsai/pkg/kubectl/drain"
	"bonsai/pkg/kubectl/edit"
	"bonsai/pkg/kubectl/events"
	"bonsai/pkg/kubectl/exec"
	"bonsai/pkg/kubectl/explain"
	"bonsai/pkg/kubectl/expose"
	"bonsai/pkg/kubectl/get"
	"bonsai/pkg/kubectl/kuberc"
	"bonsai/pkg/kubectl/kustomize"
	"bonsai/pkg/kubectl/label"
	"bonsai/pkg/kubectl/logs"
	"bonsai/pkg/kubectl/patch"
	"bonsai/pkg/kubectl/plugin"
	"bonsai/pkg/kubectl/portforward"
	"bonsai/pkg/kubectl/proxy"
	"bonsai/pkg/kubectl/replace"
	"bonsai/pkg/kubectl/rollout"
	"bonsai/pkg/kubectl/run"
	"bonsai/pkg/kubectl/scale"
	"bonsai/pkg/kubectl/set"
	"bonsai/pkg/kubectl/taint"
	"bonsai/pkg/kubectl/top"
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
		{"beginner", "Basic Commands (Beginner):", cmds{create.NewCommand(edit.Objects), expose.NewCommand, run.NewCommand, set.NewCommand}},
		{"intermediate", "Basic Commands (Intermediate):", cmds{explain.NewCommand, get.NewCommand, edit.NewCommand, delete.NewCommand}},
		{"deploy", "Deploy Commands:", cmds{rollout.NewCommand(describe.Template), scale.NewCommand, autoscale.NewCommand}},
		{"management", "Cluster Management Commands:", cmds{certificate.NewCommand, clusterinfo.NewCommand, top.NewCommand, drain.NewCordon, drain.NewUncordon, drain.NewCommand, taint.NewCommand}},
		{"debugging", "Troubleshooting and Debugging Commands:", cmds{describe.NewCommand, logs.NewCommand, attach.NewCommand, exec.NewCommand, portforward.NewCommand, proxy.NewCommand, cp.NewCommand, auth.NewCommand, debug.NewCommand, events.NewCommand}},
		{"advanced", "Advanced Commands:", cmds{diff.NewCommand, apply.NewCommand(edit.Objects), patch.NewCommand, replace.NewCommand, wait.NewCommand, kustomize.NewCommand}},
		{"settings", "Settings Commands:", cmds{completion.NewCommand, label.NewCommand, annotate.NewCommand}},
		{"other", "Other Commands:", cmds{apiversions.NewCommand, version.NewCommand, apiresources.NewCommand, config.NewCommand, kuberc.NewCommand, plugin.NewCommand}},
	}
}

// warnOn sends what is said of deprecated flags to w.
func warnOn(w io.Writer, c *cobra.Command) {
	c.Flags().SetOutput(w)
	for _, sub := range c.Commands() {
		warnOn(w, sub)
	}
}

// place is the annotation of a command's place in its group.
const place = "place"

func addGroups(root *cobra.Command, f *cli.Factory, streams cli.IOStreams) {
	for _, g := range groups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for n, newCommand := range g.commands {
			c := newCommand(f, streams)
			if c.Name() == "kuberc" && !kuberc.Enabled() {
				continue
			}
			c.GroupID = g.id
			c.Annotations = map[string]string{place: fmt.Sprintf("%02d", n)}
			root.AddCommand(c)
			warnOn(streams.ErrOut, c)
		}
	}
}
