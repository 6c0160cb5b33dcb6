package main

import (
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/cluster"
)

func dnsCommand(chosen *chosen) *cobra.Command {
	c := &cobra.Command{
		Use:     "dns",
		Short:   "Resolve cluster names and route to Services on this machine while the command runs",
		Example: "  bonsai dns\n  bonsai dns --listen 127.0.0.1:5300",
		Args:    daemon.NoArgs,
	}
	listen := c.Flags().String("listen", "127.0.0.1:10053", "IPv4 address and port to answer at")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		at, err := netip.ParseAddrPort(*listen)
		if err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
		return cluster.ServeDNS(cmd.Context(), chosen.dataDir, at, cmd.OutOrStdout(),
			slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
	}
	return c
}
