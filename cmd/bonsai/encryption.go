package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/cluster"
)

// encryptionCommand's enable takes three steps with the machine's lock each. It goes on where it was when it is run
// again.
func encryptionCommand(chosen *chosen) *cobra.Command {
	group := &cobra.Command{Use: "encryption", Short: "Show and change the keys that encrypt Secrets in etcd"}
	enable := &cobra.Command{
		Use:     "enable",
		Short:   "Encrypt the Secrets of an existing cluster, which is restarted",
		Example: "  bonsai encryption enable",
		Args:    daemon.NoArgs,
	}
	patience := waitFlag(enable, new(time.Duration), "the cluster")
	enable.RunE = func(cmd *cobra.Command, _ []string) error {
		restart, err := cluster.EnableEncryption(cmd.Context(), chosen.dataDir)
		if err != nil {
			return err
		}
		if restart {
			if err := restarted(cmd, chosen, *patience); err != nil {
				return err
			}
		}
		return cluster.RotateEncryption(cmd.Context(), chosen.dataDir, cmd.OutOrStdout())
	}
	group.AddCommand(enable,
		&cobra.Command{
			Use:   "rotate",
			Short: "Encrypt all Secrets with a new key",
			Long: `Encrypt all Secrets with a new key. Every API server can read the new key before one writes with it, and the old one leaves when no Secret
needs it. If the command is interrupted, run it again: it goes on. Keys that snapshots need are kept.`,
			Example: "  bonsai encryption rotate",
			Args:    daemon.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return cluster.RotateEncryption(cmd.Context(), chosen.dataDir, cmd.OutOrStdout())
			},
		},
		&cobra.Command{
			Use:     "status",
			Short:   "Show the keys, and how many Secrets are encrypted by each",
			Example: "  bonsai encryption status",
			Args:    daemon.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return cluster.PrintEncryption(cmd.Context(), chosen.dataDir, cmd.OutOrStdout())
			},
		})
	return group
}

// restarted stops the cluster and starts it again.
func restarted(cmd *cobra.Command, chosen *chosen, patience time.Duration) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := cluster.Stop(cmd.Context(), chosen.dataDir, cmd.OutOrStdout()); err != nil {
		return err
	}
	config, err := kept(cmd.Context(), chosen, self)
	if err != nil {
		return err
	}
	return up(cmd, chosen.home, config, self, patience)
}
