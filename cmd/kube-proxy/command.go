package main

import (
	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
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
			"EndpointSlices and forwards their TCP, UDP and SCTP traffic to endpoints, with nftables rules.",
		Args: daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := o.logging.New(cmd.ErrOrStderr(), component)
			if err != nil {
				return err
			}
			if o.cleanup {
				return nft.Remove(cmd.Context())
			}
			s, err := o.settings(cmd.Flags(), log)
			if err != nil {
				return err
			}
			accepted().Warn(cmd.Flags(), log)
			return run(cmd.Context(), s, log)
		},
	}
	o.addFlags(cmd.Flags())
	daemon.AddVersion(cmd)
	return cmd
}
