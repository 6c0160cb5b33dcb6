package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/featuregates"
	"bonsai/pkg/proxy/iptables"
	"bonsai/pkg/proxy/ipvs"
	"bonsai/pkg/proxy/nft"
)

const component = "kube-proxy"

// newCommand returns the command with upstream's flags.
func newCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   component,
		Short: "Make Services work on one node",
		Long: "The Kubernetes network proxy runs on each node. It reflects Services as the API defines them: it watches Services and\n" +
			"EndpointSlices and forwards their TCP, UDP and SCTP traffic to endpoints, with rules of nftables or iptables, or\n" +
			"virtual servers of IPVS.",
		Args: daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.cleanup {
				if _, err := checkLogging(o.logging.Config, o.flags.FeatureGates); err != nil {
					return err
				}
				return cleanup(cmd.Context())
			}
			early := daemon.EarlyLog(cmd, component)
			if o.writeTo != "" {
				return o.writeConfiguration(cmd.Flags(), early)
			}
			s, err := o.settings(cmd.Flags(), early)
			if err != nil {
				return err
			}
			log, flush := s.logging.Open(cmd, component)
			defer flush()
			accepted().Warn(cmd.Flags(), log)
			featuregates.Warn(s.gates, log, gateIPVS)
			if len(s.idle) > 0 {
				log.Warn("these fields of the configuration file are accepted, but have no effect", "fields", s.idle)
			}
			if o.initOnly {
				return s.prepare()
			}
			if err := s.logging.Libraries(log); err != nil {
				return err
			}
			return run(cmd.Context(), s, daemon.NewPages(component, cmd.Flags()), log)
		},
	}
	o.addFlags(cmd.Flags())
	daemon.AddVersion(cmd)
	return cmd
}

// cleanup removes the rules of every mode.
func cleanup(ctx context.Context) error {
	return errors.Join(nft.Remove(ctx), iptables.Remove(ctx), ipvs.Remove(ctx))
}
