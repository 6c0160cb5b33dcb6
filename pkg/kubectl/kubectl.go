// Package kubectl is the command line of the cluster: the command tree, its help and how it ends. The verbs are packages
// below; package cli is what they stand on.
package kubectl

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/completion"
	"bonsai/pkg/kubectl/kuberc"
	"bonsai/pkg/kubectl/plugin"
	"bonsai/pkg/kubectl/printers"
)

// Main runs kubectl with args and returns the exit code. version is kubectl's own. A ctx that a signal ended
// (*cli.Signalled) ends the command without a word; the code is then 128 and the signal's number if the process is to die by
// it. What it writes for people is escaped for terminals (printers.Escape).
func Main(ctx context.Context, version string, args []string, streams cli.IOStreams) int {
	streams.Out, streams.ErrOut = printers.Escaping(streams.Out), printers.Escaping(streams.ErrOut)
	f := cli.NewFactory(version, streams)
	root := newCommand(f, streams)
	args, err := prefer(root, f, args, streams)
	if err == nil {
		root.SetArgs(args)
		err = dispatch(ctx, root, args, streams)
	}
	klog.Flush()
	if s := cli.SignalOf(ctx); s != 0 {
		return cli.Ended(err, s)
	}
	if wrong, ok := errors.AsType[*kuberc.Error](err); ok {
		fmt.Fprintln(streams.ErrOut, wrong)
		err = cli.Silent()
	}
	return cli.Report(streams.ErrOut, err)
}

// prefer applies the user's preferences, and returns the arguments with what an alias stands for.
func prefer(root *cobra.Command, f *cli.Factory, args []string, streams cli.IOStreams) ([]string, error) {
	if !kuberc.Enabled() {
		return args, nil
	}
	where, err := kuberc.Locate(kuberc.FlagOf(args, root.PersistentFlags()))
	if err != nil {
		return nil, kuberc.Wrong(err)
	}
	p, err := kuberc.Load(where, streams.ErrOut)
	if err != nil {
		return nil, kuberc.Wrong(err)
	}
	if p == nil {
		return args, nil
	}
	f.Plugins = p.PluginPolicy()
	word, err := firstWord(root, args)
	if err != nil {
		word = -1 // of a flag that root does not have, the command will say so
	}
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

// dispatch runs the command that args name: one of kubectl's, or else a plug-in.
func dispatch(ctx context.Context, root *cobra.Command, args []string, streams cli.IOStreams) error {
	root.InitDefaultHelpCmd()
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
	if cmd == root && strings.HasPrefix(rest[0], "__complete") {
		return root.ExecuteContext(ctx)
	}
	if cmd == root {
		if word, err = firstWord(root, rest); err != nil || word < 0 {
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

// NewCommand builds the command tree.
func NewCommand(version string, streams cli.IOStreams) *cobra.Command {
	return newCommand(cli.NewFactory(version, streams), streams)
}

func newCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:               "kubectl",
		Short:             "kubectl controls the Kubernetes cluster manager",
		Long:              "kubectl controls the Kubernetes cluster manager.\n\n Find more information at: https://kubernetes.io/docs/reference/kubectl/",
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			if files := cmd.Flags().Lookup("filename"); files != nil {
				names, _ := cmd.Flags().GetStringSlice("filename") // of another type there is none
				f.StdinTaken = slices.Contains(names, "-")
			}
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
	addLogFlags(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w\nSee '%s --help' for usage.", err, cmd.CommandPath())
	})
	addGroups(root, f, streams)
	completion.Register(root, f)
	setHelp(root)
	return root
}

// addLogFlags adds -v and its like: what client-go logs about requests.
func addLogFlags(root *cobra.Command) {
	set := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(set)
	for _, name := range []string{"v", "vmodule"} {
		root.PersistentFlags().AddGoFlag(set.Lookup(name))
	}
}

func unknownCommand(cmd *cobra.Command, name string) error {
	msg := fmt.Sprintf("unknown command %q for %q", name, cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if s := cmd.SuggestionsFor(name); len(s) > 0 {
		msg += "\n\nDid you mean this?\n\t" + strings.Join(s, "\n\t")
	}
	return errors.New(msg)
}
