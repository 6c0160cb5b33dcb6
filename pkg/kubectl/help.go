package kubectl

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// setHelp words the help of all commands as kubectl does: the global flags are shown by "kubectl options" only.
func setHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { help(cmd.OutOrStdout(), cmd) })
	root.SetUsageFunc(func(cmd *cobra.Command) error { usage(cmd.OutOrStderr(), cmd); return nil })
	root.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true})
	root.AddCommand(&cobra.Command{
		Use: "options", Short: "Print the list of flags inherited by all commands", Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "The following options can be passed to any command:\n\n")
			flags(cmd.OutOrStdout(), cmd.Root().PersistentFlags())
			return nil
		},
	})
}

func help(w io.Writer, cmd *cobra.Command) {
	text := strings.TrimSpace(cmd.Long)
	if text == "" {
		text = cmd.Short
	}
	fmt.Fprintf(w, "%s\n\n", text)
	usage(w, cmd)
}

func usage(w io.Writer, cmd *cobra.Command) {
	if cmd.HasExample() {
		fmt.Fprintf(w, "Examples:\n%s\n\n", strings.TrimRight(indent(cmd.Example), "\n"))
	}
	subcommands(w, cmd)
	if own := cmd.NonInheritedFlags(); cmd.HasParent() && own.HasAvailableFlags() {
		fmt.Fprintf(w, "Options:\n")
		flags(w, own)
	}
	line := cmd.UseLine()
	if cmd.HasSubCommands() && !cmd.HasParent() {
		line = cmd.CommandPath() + " [flags]"
	} else if cmd.HasSubCommands() {
		line = cmd.CommandPath() + " [flags]"
	}
	if !strings.Contains(line, "[flags]") {
		line += " [flags]"
	}
	fmt.Fprintf(w, "Usage:\n  %s [options]\n\n", line)
	if cmd.HasSubCommands() {
		fmt.Fprintf(w, "Use \"%s <command> --help\" for more information about a given command.\n", cmd.CommandPath())
	}
	fmt.Fprintln(w, `Use "kubectl options" for a list of global command-line options (applies to all commands).`)
}

func subcommands(w io.Writer, cmd *cobra.Command) {
	list := func(title, id string) {
		var shown []*cobra.Command
		for _, c := range cmd.Commands() {
			if c.GroupID == id && !c.Hidden {
				shown = append(shown, c)
			}
		}
		if len(shown) == 0 {
			return
		}
		fmt.Fprintln(w, title)
		t := tabwriter.NewWriter(w, 0, 8, 1, ' ', 0)
		for _, c := range shown {
			fmt.Fprintf(t, "  %-15s %s\n", c.Name(), c.Short)
		}
		t.Flush()
		fmt.Fprintln(w)
	}
	for _, g := range cmd.Groups() {
		list(g.Title, g.ID)
	}
	list("Available Commands:", "")
}

func flags(w io.Writer, set *pflag.FlagSet) {
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		short := ""
		if f.Shorthand != "" {
			short = "-" + f.Shorthand + ", "
		}
		value := f.DefValue
		if f.Value.Type() == "string" {
			value = "'" + value + "'"
		}
		fmt.Fprintf(w, "    %s--%s=%s:\n\t%s\n\n", short, f.Name, value, f.Usage)
	})
}

func indent(s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	for i, l := range lines {
		if l = strings.TrimSpace(l); l != "" {
			l = "  " + l
		}
		lines[i] = l
	}
	return strings.Join(lines, "\n")
}
