package main

import (
	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
)

const component = "kube-scheduler"

// newCommand returns the command with upstream's flags.
func newCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   component,
		Short: "Assign pods to nodes",
		Long: "The Kubernetes scheduler is a control plane process which assigns Pods to Nodes. It determines which Nodes are valid\n" +
			"placements for each Pod in the scheduling queue, ranks each valid Node and binds the Pod to a suitable Node.",
		Args: daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.gates.Validate(); err != nil {
				return err
			}
			cfg, err := o.complete(cmd.Flags())
			if err != nil {
				return err
			}
			log, err := o.logging.New(cmd.ErrOrStderr(), component)
			if err != nil {
				return err
			}
			accepted().Warn(cmd.Flags(), log)
			o.gates.Warn(log)
			return run(cmd.Context(), o, cfg, daemon.NewPages(component, cmd.Flags()), log)
		},
	}
	o.addFlags(cmd.Flags())
	daemon.AddVersion(cmd)
	return cmd
}
