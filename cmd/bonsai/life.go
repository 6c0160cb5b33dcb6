package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
	"bonsai/deploy/addons"
	"bonsai/pkg/cluster"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervisor"
)

func stopCommand(chosen *chosen) *cobra.Command {
	return &cobra.Command{
		Use:     "stop",
		Short:   "Stop a cluster; start continues with the same objects, nodes, addresses and ports",
		Example: "  bonsai stop\n  bonsai start",
		Args:    daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cluster.Stop(cmd.Context(), chosen.dataDir, cmd.OutOrStdout())
		},
	}
}

func restartCommand(chosen *chosen) *cobra.Command {
	return &cobra.Command{
		Use:   "restart",
		Short: "Restart the components of a running cluster one by one, with the programs installed now; pods continue",
		Example: "  # After a newer release was installed beside the running cluster\n  bonsai restart\n\n" +
			"  # To start everything else, such as containerd, with the new programs\n  bonsai stop && bonsai start",
		Args: daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cluster.Restart(cmd.Context(), chosen.dataDir, cmd.OutOrStdout())
		},
	}
}

// startCommand's --foreground is for service managers. There the patience goes to Serve instead of bounding the
// context, since the context's end is the end of the service.
func startCommand(chosen *chosen) *cobra.Command {
	c := &cobra.Command{
		Use:     "start",
		Short:   "Start a stopped cluster and wait until it is ready",
		Example: "  bonsai stop\n  bonsai start",
		Args:    daemon.NoArgs,
	}
	foreground := c.Flags().Bool("foreground", false,
		"run the cluster in this process until it receives SIGTERM, for systemd and other service managers")
	forceNew := c.Flags().Bool("force-new-cluster", false,
		"first make this machine's etcd member the only one, if most machines with control planes are gone for good; data that only they had is lost")
	patience := waitFlag(c, new(time.Duration), "the cluster")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		if *forceNew && *foreground {
			return errors.New("--force-new-cluster: is for a start in the background, once; then let the service manager start it")
		}
		if *forceNew {
			return startAlone(cmd, chosen, self, *patience)
		}
		config, err := kept(cmd.Context(), chosen, self)
		if err != nil {
			return err
		}
		if *foreground {
			log, err := supervisor.OpenServiceLog(plan.Layout(chosen.dataDir))
			if err != nil {
				return err
			}
			defer log.Close()
			return cluster.Serve(cmd.Context(), chosen.home, config, self, *patience, cmd.OutOrStdout(),
				slog.New(slog.NewTextHandler(log, nil)).With("component", "bonsai"))
		}
		return up(cmd, chosen.home, config, self, *patience)
	}
	return c
}

// startAlone starts a cluster whose other machines with control planes are gone for good.
func startAlone(cmd *cobra.Command, chosen *chosen, self string, patience time.Duration) error {
	if err := cluster.ForceNewCluster(cmd.Context(), chosen.dataDir, cmd.OutOrStdout()); err != nil {
		return err
	}
	config, err := kept(cmd.Context(), chosen, self)
	if err != nil {
		return err
	}
	if err := up(cmd, chosen.home, config, self, patience); err != nil {
		return err
	}
	return cluster.ForgetPeers(cmd.Context(), chosen.dataDir)
}

// kept is the cluster in the data directory, with the binaries beside self.
func kept(ctx context.Context, chosen *chosen, self string) (plan.Config, error) {
	if err := cluster.FinishRestore(ctx, chosen.dataDir); err != nil {
		return plan.Config{}, err
	}
	config, err := datadir.LoadExisting(chosen.dataDir)
	config.BinDir, config.Addons = filepath.Dir(self), addons.Files
	return config, err
}

func pauseCommand(chosen *chosen) *cobra.Command {
	return &cobra.Command{
		Use:     "pause",
		Short:   "Freeze all processes of a cluster, including containers",
		Example: "  bonsai pause\n  bonsai resume",
		Args:    daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			began := time.Now()
			if err := cluster.Pause(cmd.Context(), chosen.dataDir); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "Paused in %.2f s (bonsai resume).\n", time.Since(began).Seconds())
			return err
		},
	}
}

func resumeCommand(chosen *chosen) *cobra.Command {
	return &cobra.Command{
		Use:     "resume",
		Short:   "Resume a paused cluster",
		Example: "  bonsai pause\n  bonsai resume",
		Args:    daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			began := time.Now()
			if err := cluster.Resume(cmd.Context(), chosen.dataDir); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "Goes on after %.2f s.\n", time.Since(began).Seconds())
			return err
		},
	}
}

func nodeCommand(chosen *chosen) *cobra.Command {
	node := &cobra.Command{Use: "node", Short: "Add nodes to a running cluster, or remove them"}
	add := &cobra.Command{
		Use:     "add",
		Short:   "Add a node and wait until it is Ready",
		Example: "  bonsai node add\n  bonsai node add --labels disktype=ssd",
		Args:    daemon.NoArgs,
	}
	labels := add.Flags().StringToString("labels", nil, "labels of the node, as key=value,...")
	patience := waitFlag(add, new(time.Duration), "the node")
	add.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := host.WithPatience(cmd.Context(), *patience)
		defer cancel()
		return cluster.AddNode(ctx, chosen.dataDir, *labels, cmd.OutOrStdout())
	}
	node.AddCommand(add, &cobra.Command{
		Use:     "remove NODE",
		Short:   "Stop a node and remove it with its data; run kubectl drain first to move its pods",
		Example: "  bonsai node remove n3",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cluster.RemoveNode(cmd.Context(), chosen.dataDir, args[0], cmd.OutOrStdout())
		},
	})
	return node
}

// snapshotCommand's restore takes two steps with the machine's lock each. If the second fails, the snapshot is in place
// and the cluster is stopped (`bonsai start`).
func snapshotCommand(chosen *chosen) *cobra.Command {
	group := &cobra.Command{Use: "snapshot", Short: "Save a cluster and restore it later"}
	restore := &cobra.Command{
		Use:     "restore SNAPSHOT",
		Short:   "Restore a snapshot; a running cluster is restarted",
		Example: "  bonsai snapshot restore clean",
		Args:    cobra.ExactArgs(1),
	}
	forceNew := restore.Flags().Bool("force-new-cluster", false,
		"forget the control planes of other machines, which are gone for good, and start the snapshot as a cluster of this machine")
	patience := waitFlag(restore, new(time.Duration), "the cluster")
	restore.RunE = func(cmd *cobra.Command, args []string) error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		wasUp, err := cluster.RestoreSnapshot(cmd.Context(), chosen.home, chosen.dataDir, args[0], *forceNew,
			cmd.OutOrStdout())
		if err == nil && *forceNew {
			return startAlone(cmd, chosen, self, *patience)
		}
		if err != nil {
			return err
		}
		if !wasUp {
			fmt.Fprintf(cmd.OutOrStdout(), "Restored %s. The cluster was not running, and is not started (bonsai start).\n",
				args[0])
			return nil
		}
		config, err := kept(cmd.Context(), chosen, self)
		if err != nil {
			return err
		}
		return up(cmd, chosen.home, config, self, *patience)
	}
	save := &cobra.Command{
		Use:     "save SNAPSHOT",
		Short:   "Save the cluster's objects, volumes, images and certificates in its data directory",
		Example: "  bonsai snapshot save clean",
		Args:    cobra.ExactArgs(1),
	}
	withKeys := save.Flags().Bool("with-encryption-keys", false,
		"put the keys of the Secrets into the snapshot, for another cluster: whoever has the snapshot can then read all Secrets in it")
	save.RunE = func(cmd *cobra.Command, args []string) error {
		return cluster.SaveSnapshot(cmd.Context(), chosen.dataDir, args[0], *withKeys, cmd.OutOrStdout())
	}
	group.AddCommand(
		save,
		restore,
		&cobra.Command{
			Use:     "list",
			Short:   "List the snapshots of the cluster",
			Example: "  bonsai snapshot list",
			Args:    daemon.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return cluster.PrintSnapshots(chosen.dataDir, cmd.OutOrStdout())
			},
		},
		&cobra.Command{
			Use:     "rm SNAPSHOT",
			Short:   "Remove a snapshot",
			Example: "  bonsai snapshot rm clean",
			Args:    cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return cluster.RemoveSnapshot(cmd.Context(), chosen.dataDir, args[0])
			},
		},
	)
	return group
}

func defragmentCommand(chosen *chosen) *cobra.Command {
	return &cobra.Command{
		Use:   "defragment",
		Short: "Shrink etcd's file, and accept writes again after etcd was full",
		Long: `Shrink etcd's file, and accept writes again after etcd was full (the alarm NOSPACE, which bonsai status shows).
This first drops the history of all objects, so watchers list them again.`,
		Example: "  bonsai defragment",
		Args:    daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cluster.Defragment(cmd.Context(), chosen.dataDir, cmd.OutOrStdout())
		},
	}
}
