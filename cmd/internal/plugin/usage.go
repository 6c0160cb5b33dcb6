package plugin

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bonsai/pkg/kubectl/cli"
)

// AddClientFlags adds kubectl's flags for the connection to cmd. Its help shows them below the flags of its own, to
// which the namespace counts: those are what people look for.
func AddClientFlags(cmd *cobra.Command, f *cli.Factory) {
	client := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddClientFlags(client)
	cmd.Flags().AddFlagSet(client)
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		own, connection := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if client.Lookup(flag.Name) != nil && flag.Name != "namespace" {
				connection.AddFlag(flag)
			} else {
				own.AddFlag(flag)
			}
		})
		_, err := fmt.Fprintf(cmd.OutOrStdout(),
			"Usage:\n  %s\n\nExamples:\n%s\n\nFlags:\n%s\nFlags for the connection to the cluster:\n%s",
			cmd.UseLine(), cmd.Example, own.FlagUsages(), connection.FlagUsages())
		return err
	})
}
