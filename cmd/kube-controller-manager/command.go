package main

import (
	"errors"

	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
)

const component = "kube-controller-manager"

// newCommand returns the command with upstream's flags.
//
// The checks run before anything is opened or sent, so that a wrong flag ends the process at once.
func newCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   component,
		Short: "Run the control loops of the cluster",
		Long: "The Kubernetes controller manager embeds the core control loops: each watches the shared state of the cluster\n" +
			"through the API server and makes changes that move the current state towards the desired state.",
		Args: daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.gates.Validate(); err != nil {
				return err
			}
			if err := o.logging.Validate(o.gates.Gates(), nil); err != nil {
				return err
			}
			log, flush := o.logging.Open(cmd, component)
			defer flush()
			if err := errors.Join(refused().Check(cmd.Flags()), accepted().Check(cmd.Flags()),
				daemon.CheckCloudProvider(cmd.Flags()), o.validate()); err != nil {
				return err
			}
			accepted().Warn(cmd.Flags(), log)
			o.gates.Warn(log)
			if err := o.logging.Libraries(log); err != nil {
				return err
			}
			return run(cmd.Context(), o, daemon.NewPages(component, cmd.Flags()), log)
		},
	}
	o.addFlags(cmd.Flags())
	daemon.AddVersion(cmd)
	return cmd
}
