package kubectl

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bonsai/pkg/kubectl/plugin"
)

// setHelp words the help of all commands as kubectl does: the global flags are shown by "kubectl options" only.
func setHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { help(cmd.OutOrStdout(), cmd) })
	root.SetUsageFunc(func(cmd *cobra.Command) error { usage(cmd.OutOrStderr(), cmd); return nil })
	root.SetHelpCommand(&cobra.Command{
		Use: "help [command]", Short: "Help about any command", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, _, err := cmd.Root().Find(args)
			if err != nil || about == cmd.Root() && len(args) > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "Unknown help topic %#q\n\n\n", args)
				usage(cmd.ErrOrStderr(), cmd.Root())
				return nil
			}
			return about.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			var out []cobra.Completion
			if about, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
				for _, c := range about.Commands() {
					if (c.IsAvailableCommand() || c.Name() == "help") && strings.HasPrefix(c.Name(), begun) {
						out = append(out, cobra.CompletionWithDesc(c.Name(), c.Short))
					}
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
	})
	root.AddCommand(&cobra.Command{
		Use: "alpha", Short: "Commands for features in alpha", Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.ErrOrStderr(), "No alpha commands are available in this version of kubectl")
			return nil
		},
	})
	root.AddCommand(&cobra.Command{
		Use: "options", Short: "Print the list of flags inherited by all commands",
		Example: "# Print flags inherited by all commands\nkubectl options",
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
		text = strings.TrimSuffix(cmd.Short, ".") + "."
	}
	fmt.Fprintf(w, "%s\n\n", text)
	usage(w, cmd)
}

func usage(w io.Writer, cmd *cobra.Command) {
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(w, "Aliases:\n%s\n\n", cmd.NameAndAliases())
	}
	if cmd.HasExample() {
		fmt.Fprintf(w, "Examples:\n%s\n\n", strings.TrimRight(indent(cmd.Example), "\n"))
	}
	subcommands(w, cmd)
	if cmd.HasParent() {
		var own strings.Builder
		if flags(&own, cmd.NonInheritedFlags()); own.Len() > 0 {
			fmt.Fprintf(w, "Options:\n%s", own.String())
		}
	}
	line := cmd.Use
	if cmd.HasParent() {
		line = cmd.Parent().CommandPath() + " " + line
	}
	if !strings.Contains(cmd.Use, " ") && !cmd.DisableFlagsInUseLine {
		line += " [flags]" // of the command, which says nothing else about its arguments
	}
	if !strings.Contains(line, "[options]") {
		line += " [options]"
	}
	fmt.Fprintf(w, "Usage:\n  %s\n\n", line)
	if cmd.HasSubCommands() {
		fmt.Fprintf(w, "Use \"%s <command> --help\" for more information about a given command.\n", cmd.CommandPath())
	}
	fmt.Fprintln(w, `Use "kubectl options" for a list of global command-line options (applies to all commands).`)
}

func subcommands(w io.Writer, cmd *cobra.Command) {
	width := 11
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			width = max(width, len(c.Name()))
		}
	}
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
		slices.SortStableFunc(shown, func(a, b *cobra.Command) int {
			return strings.Compare(a.Annotations[place], b.Annotations[place])
		})
		fmt.Fprintln(w, title)
		for _, c := range shown {
			fmt.Fprintf(w, "  %-*s   %s\n", width, c.Name(), c.Short)
		}
		fmt.Fprintln(w)
	}
	for _, g := range cmd.Groups() {
		if g.ID == plugins {
			listPlugins(w, g.Title, plugin.Commands(cmd))
			continue
		}
		list(g.Title, g.ID)
	}
	if len(cmd.Groups()) == 0 { // among groups, what is in none (options) is for those who know it
		list("Available Commands:", "")
	}
}

// listPlugins has its title even where there is none.
func listPlugins(w io.Writer, title string, names []string) {
	fmt.Fprintln(w, title)
	width := 11
	for _, name := range names {
		width = max(width, len(name))
	}
	for _, name := range names {
		fmt.Fprintf(w, "  %-*s   %s\n", width, name, plugin.Describe(name))
	}
	fmt.Fprintln(w)
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
