package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"

	"github.com/spf13/cobra"

	"bonsai/pkg/cluster/preflight"
	"bonsai/pkg/cluster/rootless"
	"bonsai/pkg/cluster/start"
	"bonsai/pkg/cluster/systemd"
)

// enter continues the command of a user who is not root in namespaces of his own, in which he is. It returns only with
// an error. A check prints what the machine lacks for that; any other command names it.
func (c *chosen) enter(cmd *cobra.Command) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	home := os.Getenv("BONSAI_HOME")
	if home == "" {
		if home, err = rootless.DefaultHome(); err != nil {
			return err
		}
	}
	u, err := rootless.CurrentUser()
	if err != nil {
		return err
	}
	found := preflight.InspectAccount(start.Account(cmd.Context(), u), preflight.ReadSysctls(),
		preflight.ReadDistribution())
	if err := preflight.AccountErrors(found); err != nil {
		if cmd.Name() != "check" {
			return err
		}
		return errors.Join(preflight.PrintTable(cmd.OutOrStdout(), found),
			errors.New("this machine lacks what clusters of a user need: see the lines with \"missing\""))
	}
	return rootless.Entry{Home: home, Self: self, Attach: systemd.Attach}.Enter(cmd.Context(), os.Args[1:])
}

// refuseRootless refuses what only root of the machine can do.
func refuseRootless(cmd *cobra.Command) error {
	why := map[string]string{
		"join": "the node of a machine that joins has the machine's network",
		"dns":  "it adds routes to the machine. Use kubectl port-forward, or publish a port (bonsai up --port)",
	}[cmd.Name()]
	if foreground := cmd.Flags().Lookup("foreground"); foreground != nil && foreground.Changed {
		why = "--foreground is for services of the machine. A unit of yours runs bonsai start and bonsai stop"
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("%s needs root (sudo bonsai %[1]s ...): %s", cmd.Name(), why)
}

// rootlessKeepCommand is the process that keeps a user's namespaces. Only rootless.Entry starts it.
func rootlessKeepCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "rootless-keep HOME",
		Hidden: true, Annotations: map[string]string{anyone: ""},
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)).With("component", "rootless")
			return rootless.Keeper{Home: args[0], Self: self, Scope: systemd.UserScope, Log: log}.Run(cmd.Context(),
				func() error {
					_, err := fmt.Fprintln(cmd.OutOrStdout())
					return err
				})
		},
	}
}

// rootlessBeginCommand and rootlessInitCommand are the two steps of the first process in a user's namespaces. The first
// becomes the second by exec, with the same pid.
func rootlessBeginCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "rootless-begin PLACE DNS",
		Hidden: true, Annotations: map[string]string{anyone: ""},
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return rootless.Begin(self, os.Stdin, args)
		},
	}
}

func rootlessInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "rootless-init PLACE DNS",
		Hidden: true, Annotations: map[string]string{anyone: ""},
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			dns, err := netip.ParseAddr(args[1])
			if err != nil {
				return err
			}
			return rootless.Init(cmd.Context(), args[0], dns, os.Stdin, cmd.OutOrStdout())
		},
	}
}
