// Package kubectl is the command line of the cluster: the command tree, its help and how it ends. The verbs are
// packages below; package cli is what they stand on.
package kubectl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/kuberc"
	"bonsai/pkg/kubectl/plugin"
	"bonsai/pkg/kubectl/printers"
)

// Main runs kubectl with args and returns the exit code. version is kubectl's own. A ctx that a signal ended
// (*cli.Signalled) ends the command without a word; the code is then 128 and the signal's number if the process is to
// die by it. What it writes for people is escaped for terminals (printers.Escape).
func Main(ctx context.Context, version string, args []string, streams cli.IOStreams) int {
	streams.Out, streams.ErrOut = printers.Escaping(streams.Out), printers.Escaping(streams.ErrOut)
	f := cli.NewFactory(version, streams)
	var own diagnosis
	root := newRoot(f, streams, &own)
	args, err := furnish(root, f, args, streams)
	if err == nil {
		root.SetArgs(args)
		err = dispatch(ctx, root, args, streams)
	}
	if failed := own.end(); err == nil {
		err = failed
	}
	if s := cli.SignalOf(ctx); s != 0 {
		return cli.Ended(err, s)
	}
	if wrong, ok := errors.AsType[*kuberc.Error](err); ok {
		fmt.Fprintln(streams.ErrOut, wrong)
		err = cli.Silent()
	}
	return cli.Report(streams.ErrOut, err)
}

// furnish adds to root the commands that args can need: the one that they name if it is one of kubectl's, else all. It
// applies the user's preferences, and returns the arguments with what an alias stands for.
func furnish(root *cobra.Command, f *cli.Factory, args []string, streams cli.IOStreams) ([]string, error) {
	p, err := preference(root, args, streams)
	if err != nil {
		return nil, kuberc.Wrong(err)
	}
	word, err := firstWord(root, args)
	if err != nil {
		word = -1 // of a flag that root does not have, the command will say so
	}
	if p == nil {
		if word < 0 || !addCommand(args[word], root, f, streams) {
			addAll(root, f, streams, args, word)
		}
		return args, nil
	}
	addAll(root, f, streams, args, word)
	f.Plugins = p.PluginPolicy()
	if word >= 0 && strings.HasPrefix(args[word], "__complete") && word+1 < len(args)-1 {
		word++
	}
	args, err = p.Apply(root, args, word)
	if err != nil {
		return nil, kuberc.Wrong(err)
	}
	p.SetDefaults(root, streams.ErrOut)
	return args, nil
}

// addAll adds all of kubectl's commands to root, and for completions the plug-ins. word is where args name the command,
// -1 for nowhere.
func addAll(root *cobra.Command, f *cli.Factory, streams cli.IOStreams, args []string, word int) {
	addCommands(root, f, streams)
	root.InitDefaultHelpCmd() // which no alias and no plug-in may take the place of
	if word >= 0 && word+1 < len(args) && strings.HasPrefix(args[word], "__complete") {
		plugin.AddCompletions(root, streams, args[word+1:])
	}
}

// preference reads the user's preferences, nil for none.
func preference(root *cobra.Command, args []string, streams cli.IOStreams) (*kuberc.Preference, error) {
	if !kuberc.Enabled() {
		return nil, nil
	}
	where, err := kuberc.Locate(kuberc.FlagOf(args, root.PersistentFlags()))
	if err != nil {
		return nil, err
	}
	return kuberc.Load(where, streams.ErrOut)
}

// dispatch runs the command that args name: one of kubectl's, or else a plug-in.
func dispatch(ctx context.Context, root *cobra.Command, args []string, streams cli.IOStreams) error {
	cmd, rest, err := root.Find(args)
	word := slices.IndexFunc(rest, func(a string) bool { return !strings.HasPrefix(a, "-") })
	least := 1
	switch {
	case err != nil || word < 0:
		return root.ExecuteContext(ctx)
	case cmd == root:
	case cmd.CommandPath() == "kubectl create" && word == 0: // which plug-ins may extend
		rest, least = append([]string{"create"}, rest...), 2
	default:
		return root.ExecuteContext(ctx)
	}
	if cmd == root {
		if word, err = firstWord(root, rest); err != nil || word < 0 || strings.HasPrefix(rest[word], "__complete") {
			return root.ExecuteContext(ctx)
		}
	}
	path, left := plugin.Find(rest[word:], least)
	switch {
	case path != "" && word > 0:
		fmt.Fprintf(streams.ErrOut, "Error: flags cannot be placed before plugin name: %s\n", rest[0])
		return cli.Silent()
	case path != "":
		return plugin.Run(ctx, streams, path, left)
	case cmd == root:
		return unknownCommand(root, rest[word])
	}
	return root.ExecuteContext(ctx)
}

// firstWord is where in args the first word stands that is no flag of all commands and no value of one, -1 for nowhere.
func firstWord(root *cobra.Command, args []string) (int, error) {
	set := root.PersistentFlags()
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return -1, nil
		}
		if !strings.HasPrefix(a, "-") || a == "-" {
			return i, nil
		}
		name, _, said := strings.Cut(strings.TrimLeft(a, "-"), "=")
		flag := set.Lookup(name)
		if !strings.HasPrefix(a, "--") {
			flag = set.ShorthandLookup(a[1:2])
			said = said || len(a) > 2
		}
		if flag == nil {
			return -1, fmt.Errorf("unknown flag: %s", a)
		}
		if !said && flag.NoOptDefVal == "" {
			i++ // its value
		}
	}
	return -1, nil
}

// newRoot returns kubectl with its flags and its help, but without the commands of its groups.
func newRoot(f *cli.Factory, streams cli.IOStreams, own *diagnosis) *cobra.Command {
	root := &cobra.Command{
		Use:               "kubectl",
		Short:             "kubectl controls the Kubernetes cluster manager",
		Long:              "kubectl controls the Kubernetes cluster manager.\n\n Find more information at: https://kubernetes.io/docs/reference/kubectl/",
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			f.Command = cmd.CommandPath()
			if files := cmd.Flags().Lookup("filename"); files != nil {
				names, _ := cmd.Flags().GetStringSlice("filename") // of another type there is none
				f.StdinTaken = slices.Contains(names, "-")
			}
			return own.begin()
		},
		PersistentPostRunE: func(*cobra.Command, []string) error { return f.Warned() },
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	f.AddFlags(root.PersistentFlags())
	own.addFlags(root.PersistentFlags())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w\nSee '%s --help' for usage.", err, cmd.CommandPath())
	})
	setHelp(root)
	return root
}

func unknownCommand(cmd *cobra.Command, name string) error {
	msg := fmt.Sprintf("unknown command %q for %q", name, cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if s := cmd.SuggestionsFor(name); len(s) > 0 {
		msg += "\n\nDid you mean this?\n\t" + strings.Join(s, "\n\t")
	}
	return errors.New(msg)
}
