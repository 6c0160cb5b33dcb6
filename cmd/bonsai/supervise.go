package main

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/cluster"
)

// superviseCommand is the background process behind `bonsai up`.
func superviseCommand(chosen *chosen) *cobra.Command {
	return &cobra.Command{
		Use:    "supervise",
		Hidden: true,
		Args:   daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			config, err := cluster.Load(chosen.dataDir)
			if err != nil {
				return err
			}
			log, err := cluster.OpenLog(chosen.dataDir)
			if err != nil {
				return err
			}
			defer log.Close()
			return config.Supervise(cmd.Context(), self, slog.New(slog.NewTextHandler(log, nil)).With("component", "bonsai"))
		},
	}
}

// nodeEnterCommand and nodeInitCommand are the two steps of a node's init process.
func nodeEnterCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "node-enter CONFIG",
		Hidden: true, Annotations: map[string]string{anyone: ""},
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return cluster.EnterNode(self, args[0])
		},
	}
}

func nodeInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "node-init CONFIG",
		Hidden: true, Annotations: map[string]string{anyone: ""},
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			node, err := cluster.ReadNode(args[0])
			if err != nil {
				return err
			}
			return cluster.RunNode(cmd.Context(), node, slog.New(slog.NewTextHandler(os.Stderr, nil)).With("component", "node", "node", node.Name))
		},
	}
}
