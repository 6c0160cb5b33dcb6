package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/balancer"
	"bonsai/pkg/cluster"
	"bonsai/pkg/cluster/controlplane"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/rootless"
	"bonsai/pkg/cluster/supervisor"
)

// superviseCommand is the background process behind `bonsai up`. Only supervisor.Launch starts it, with the lock of the
// data directory as a file descriptor and a pipe as standard input.
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
			config, err := datadir.Load(chosen.dataDir)
			if err != nil {
				return err
			}
			log, err := supervisor.OpenLog(plan.Layout(chosen.dataDir))
			if err != nil {
				return err
			}
			defer log.Close()
			ctx, leave, err := rootless.Stay(cmd.Context())
			if err != nil {
				return err
			}
			defer leave()
			return supervisor.RunInBackground(ctx, config, self, os.Stdin,
				slog.New(slog.NewTextHandler(log, nil)).With("component", "bonsai"))
		},
	}
}

// nodeEnterCommand and nodeInitCommand are the two steps of a node's init process. The supervisor starts node-enter in
// new namespaces (node.Keeper). It becomes node-init by exec, with the same pid.
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
			return node.Enter(self, args[0])
		},
	}
}

// nodeInitCommand logs to standard error, which the supervisor copies into the node's log and rotates.
func nodeInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "node-init CONFIG",
		Hidden: true, Annotations: map[string]string{anyone: ""},
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			node, err := node.Read(args[0])
			if err != nil {
				return err
			}
			if err := usePrograms(node.Programs); err != nil {
				return err
			}
			return cluster.RunNode(cmd.Context(), node,
				slog.New(slog.NewTextHandler(os.Stderr, nil)).With("component", "node", "node", node.Name))
		},
	}
}

// memberEnterCommand is the first step of a process of one of several control planes. The supervisor starts it (package
// controlplane), and it becomes the program of its arguments.
func memberEnterCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "member-enter NAMESPACE HOSTNAME PROGRAM [ARGUMENT...]",
		Hidden: true, Annotations: map[string]string{anyone: ""},
		Args: cobra.MinimumNArgs(3),
		RunE: func(_ *cobra.Command, args []string) error {
			return controlplane.Enter(args[0], args[1], args[2:])
		},
	}
}

// balanceCommand is the balancer before several API servers. It reads the authority once, at its start.
func balanceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:    "balance --listen ADDRESS {--backend ADDRESS... | --backends-file FILE} --certificate-authority FILE",
		Short:  "Balance connections over the ready API servers",
		Hidden: true, Annotations: map[string]string{anyone: ""},
		Args: daemon.NoArgs,
	}
	listen := c.Flags().String("listen", "", "address and port to listen on")
	backends := c.Flags().StringArray("backend", nil, "address and port of an API server; can be given several times")
	file := c.Flags().String("backends-file", "",
		"file with the addresses and ports of API servers, one on each line, which may be replaced at any time")
	c.MarkFlagsMutuallyExclusive("backend", "backends-file")
	ca := c.Flags().String("certificate-authority", "", "file with the authority of the API servers' certificates")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		pem, err := os.ReadFile(*ca)
		if err != nil {
			return fmt.Errorf("--certificate-authority: %w", err)
		}
		check, err := balancer.Readyz(pem)
		if err != nil {
			return fmt.Errorf("--certificate-authority %s: %w", *ca, err)
		}
		if *file != "" {
			if *backends, err = balancer.ReadFile(*file); err != nil {
				return fmt.Errorf("--backends-file %s: %w", *file, err)
			}
		}
		listener, err := net.Listen("tcp", *listen)
		if err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
		log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)).With("component", "balancer")
		changes := make(chan []string)
		b, err := balancer.New(balancer.Config{Listener: listener, Backends: *backends, Changes: changes, Check: check,
			Log: log})
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		if *file != "" {
			go balancer.FollowFile(cmd.Context(), *file, *backends, changes, log)
		}
		return b.Run(cmd.Context())
	}
	return c
}
