package main

import (
	"log/slog"

	"github.com/spf13/cobra"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/scheduler/config"
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
			if err := o.logging.Validate(o.gates.Gates(), nil); err != nil {
				return err
			}
			log, flush := o.logging.Open(cmd, component)
			defer flush()
			cfg, err := o.complete(cmd.Flags())
			if err != nil {
				return err
			}
			accepted().Warn(cmd.Flags(), log)
			o.gates.Warn(log)
			warnIdle(cfg, log)
			if err := o.logging.Libraries(log); err != nil {
				return err
			}
			return run(cmd.Context(), o, cfg, daemon.NewPages(component, cmd.Flags()), log)
		},
	}
	o.addFlags(cmd.Flags())
	daemon.AddVersion(cmd)
	return cmd
}

// warnIdle logs the names of the fields without effect that the file of --config sets to something else than their
// default.
func warnIdle(cfg *configv1.KubeSchedulerConfiguration, log *slog.Logger) {
	if names := config.Idle(cfg); len(names) > 0 {
		log.Warn("these fields of the configuration file are accepted, but have no effect", "fields", names)
	}
}
