package main

import (
	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/featuregates"
)

const component = "kubelet"

// newCommand returns the command with upstream's flags. The order in RunE: settings are merged and checked before there
// is a log, because they decide how the log looks. An error of theirs goes to the command's error output.
func newCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   component,
		Short: "Run the pods of one node",
		Long: "The kubelet is the primary \"node agent\" that runs on each node. It registers the node with the API server and\n" +
			"makes sure that the containers described by the pods bound to its node run and are healthy.",
		Args: daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := o.settings(cmd.Flags())
			if err != nil {
				return err
			}
			log, flush := s.log.Open(cmd, component)
			defer flush()
			accepted().Warn(cmd.Flags(), log)
			featuregates.Warn(s.file.FeatureGates, log, gateQOSReserved, gatePeriod, gateMemoryQoS)
			// These fields do not fail the start: files written for upstream's kubelet should work (fields.go).
			if names := s.idle; len(names) > 0 {
				log.Warn("these fields of the configuration file are accepted, but have no effect", "fields", names)
			}
			logEffective(s.file, log)
			s.pages = daemon.NewPages(component, cmd.Flags())
			maskFlags(s.file, s.pages.Flags)
			if err := s.log.Libraries(log); err != nil {
				return err
			}
			return run(cmd.Context(), s, log)
		},
	}
	o.addFlags(cmd.Flags())
	daemon.AddVersion(cmd)
	return cmd
}
