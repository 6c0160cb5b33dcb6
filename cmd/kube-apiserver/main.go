// Command kube-apiserver serves the Kubernetes API from etcd: upstream's flags, read into options, and an explicit list
// of everything that is plugged in.
package main

import (
	"errors"
	"os"
	_ "time/tzdata" // for cron jobs' time zones where the machine has no database of them

	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
)

func main() { os.Exit(daemon.Main(command())) }

func command() *cobra.Command {
	o := defaults()
	cmd := &cobra.Command{
		Use:   "kube-apiserver",
		Short: "Serve the Kubernetes API",
		Long:  "The Kubernetes API server validates and stores the objects of the API and is where all other components meet.",
		Args:  daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.gates.Validate(); err != nil {
				return err
			}
			if err := o.logging.Validate(o.gates.Gates(), nil); err != nil {
				return err
			}
			log, flush := o.logging.Open(cmd, "kube-apiserver")
			defer flush()
			o.parts.Authentication.AnonymousFlag = cmd.Flags().Changed("anonymous-auth")
			if err := errors.Join(refused().Check(cmd.Flags()), accepted().Check(cmd.Flags()),
				daemon.CheckCloudProvider(cmd.Flags()), o.tracing.Read(), o.validate()); err != nil {
				return err
			}
			accepted().Warn(cmd.Flags(), log)
			o.gates.Warn(log)
			if err := o.logging.Libraries(log); err != nil {
				return err
			}
			return run(cmd.Context(), o, daemon.NewPages("apiserver", cmd.Flags()), log)
		},
	}
	o.addFlags(cmd.Flags())
	daemon.AddVersion(cmd)
	return cmd
}
