// Package kubectl is the command line of the cluster: the command tree, its help and how it ends. The verbs are packages
// below; package cli is what they stand on.
package kubectl

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
)

// Main runs kubectl with args and returns the exit code. version is kubectl's own. A ctx that a signal ended
// (*cli.Signalled) ends the command without a word; the code is then 128 and the signal's number if the process is to die by
// it. What it writes for people is escaped for terminals (printers.Escape).
func Main(ctx context.Context, version string, args []string, streams cli.IOStreams) int {
	streams.Out, streams.ErrOut = printers.Escaping(streams.Out), printers.Escaping(streams.ErrOut)
	root := NewCommand(version, streams)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	klog.Flush()
	if s := cli.SignalOf(ctx); s != 0 {
		return cli.Ended(err, s)
	}
	return cli.Report(streams.ErrOut, err)
}

// NewCommand builds the command tree.
func NewCommand(version string, streams cli.IOStreams) *cobra.Command {
	f := cli.NewFactory(version, streams)
	root := &cobra.Command{
		Use:                "kubectl",
		Short:              "kubectl controls the Kubernetes cluster manager",
		Long:               "kubectl controls the Kubernetes cluster manager.\n\n Find more information at: https://kubernetes.io/docs/reference/kubectl/",
		SilenceUsage:       true,
		SilenceErrors:      true,
		CompletionOptions:  cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:               cobra.ArbitraryArgs,
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
		if resource.Unsupported(err) {
			return errors.Unwrap(err)
		}
		return fmt.Errorf("%w\nSee '%s --help' for usage.", err, cmd.CommandPath())
	})
	addGroups(root, f, streams)
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
