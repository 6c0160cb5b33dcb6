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
	commands  []command
}

// command is a command of kubectl's own, by its name, which that of the cobra command is.
type command struct {
	name string
	make func(*cli.Factory, cli.IOStreams) *cobra.Command
}

// groups lists every command in the order of the help.
func groups() []group {
	others := []command{{"api-resources", apiresources.NewCommand}, {"api-versions", apiversions.NewCommand},
		{"config", config.NewCommand}}
	if kuberc.Enabled() {
		others = append(others, command{"kuberc", kuberc.NewCommand})
	}
	others = append(others, command{"plugin", plugin.NewCommand}, command{"version", version.NewCommand})
	return []group{
		{"beginner", "Basic Commands (Beginner):",
			[]command{{"create", create.NewCommand(edit.Objects)}, {"expose", expose.NewCommand},
				{"run", run.NewCommand}, {"set", set.NewCommand}}},
		{"intermediate", "Basic Commands (Intermediate):",
			[]command{{"explain", explain.NewCommand}, {"get", get.NewCommand}, {"edit", edit.NewCommand},
				{"delete", delete.NewCommand}}},
		{"deploy", "Deploy Commands:",
			[]command{{"rollout", rollout.NewCommand(describe.Template)}, {"scale", scale.NewCommand},
				{"autoscale", autoscale.NewCommand}}},
		{"management", "Cluster Management Commands:",
			[]command{{"certificate", certificate.NewCommand}, {"cluster-info", clusterinfo.NewCommand},
				{"top", top.NewCommand}, {"cordon", drain.NewCordon}, {"uncordon", drain.NewUncordon},
				{"drain", drain.NewCommand}, {"taint", taint.NewCommand}}},
		{"debugging", "Troubleshooting and Debugging Commands:",
			[]command{{"describe", describe.NewCommand}, {"logs", logs.NewCommand}, {"attach", attach.NewCommand},
				{"exec", exec.NewCommand}, {"port-forward", portforward.NewCommand}, {"proxy", proxy.NewCommand},
				{"cp", cp.NewCommand}, {"auth", auth.NewCommand}, {"debug", debug.NewCommand},
				{"events", events.NewCommand}}},
		{"advanced", "Advanced Commands:",
			[]command{{"diff", diff.NewCommand}, {"apply", apply.NewCommand(edit.Objects)}, {"patch", patch.NewCommand},
				{"replace", replace.NewCommand}, {"wait", wait.NewCommand}, {"kustomize", kustomize.NewCommand}}},
		{"settings", "Settings Commands:",
			[]command{{"label", label.NewCommand}, {"annotate", annotate.NewCommand},
				{"completion", completion.NewCommand}}},
		{plugins, "Subcommands provided by plugins:", nil},
		{"other", "Other Commands:", others},
	}
}

// plugins is the group of the commands that are programs of the user.
const plugins = "plugins"

// warnOn sends what is said of deprecated flags to w.
func warnOn(w io.Writer, c *cobra.Command) {
	c.Flags().SetOutput(w)
	for _, sub := range c.Commands() {
		warnOn(w, sub)
	}
}

// place is the annotation of a command's place in its group.
const place = "place"

// addCommands adds all commands to root.
func addCommands(root *cobra.Command, f *cli.Factory, streams cli.IOStreams) {
	for _, g := range groups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for n, c := range g.commands {
			made := c.make(f, streams)
			made.GroupID = g.id
			made.Annotations = map[string]string{place: fmt.Sprintf("%02d", n)}
			root.AddCommand(made)
			warnOn(streams.ErrOut, made)
			// not of root, whose commands are to stay in this order: it is that of suggestions, too
			completion.RegisterFlags(made, f)
		}
	}
	completion.Register(root, f)
}

// addCommand adds no command but the one of that name, as making the others is a tenth of a short command's CPU; false
// if there is none, or it looks at the others.
func addCommand(name string, root *cobra.Command, f *cli.Factory, streams cli.IOStreams) bool {
	if name == "plugin" {
		return false
	}
	for _, g := range groups() {
		for _, c := range g.commands {
			if c.name == name {
				made := c.make(f, streams)
				root.AddCommand(made)
				warnOn(streams.ErrOut, made)
				return true
			}
		}
	}
	return false
}
