package main

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
	"bonsai/deploy/addons"
	"bonsai/pkg/cluster/containerized"
	"bonsai/pkg/cluster/datadir"
)

// containerizedCommand runs in the containers of deploy/compose that are no component of Kubernetes.
func containerizedCommand(chosen *chosen) *cobra.Command {
	c := &cobra.Command{Use: "contained", Short: "Parts of a cluster of containers", Hidden: true}
	c.AddCommand(handOutCommand(chosen), containerizedNodeCommand(), routedCommand(), administerCommand(chosen))
	for _, sub := range c.Commands() {
		sub.Hidden, sub.Annotations = true, map[string]string{anyone: ""}
	}
	return c
}

// handOutCommand runs once, in a container that has the volumes of all others. Each of them then sees its own keys
// only.
func handOutCommand(chosen *chosen) *cobra.Command {
	c := &cobra.Command{Use: "hand-out --data-dir DIR --network CIDR --volumes DIR",
		Short: "Make certificates and give each container its own", Args: daemon.NoArgs}
	network := c.Flags().String("network", "", "the containers' network, a /24")
	volumes := c.Flags().String("volumes", "", "directory with the volumes of all containers, by their names")
	c.RunE = func(*cobra.Command, []string) error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		prefix, err := netip.ParsePrefix(*network)
		if err != nil {
			return fmt.Errorf("--network: %w", err)
		}
		config, err := containerized.New(chosen.dataDir, filepath.Dir(self), prefix)
		if err != nil {
			return err
		}
		return containerized.HandOut(config, *volumes, time.Now())
	}
	return c
}

// containerizedNodeCommand is the first step of a node's container and becomes node-init.
func containerizedNodeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "node CONFIG", Short: "Become a node", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return containerized.EnterNode(self, args[0])
		},
	}
}

func routedCommand() *cobra.Command {
	c := &cobra.Command{Use: "routed --pods CIDR --node ADDRESS [--node ADDRESS...] PROGRAM [ARGUMENT...]",
		Short: "Run a program that reaches pods", Args: cobra.MinimumNArgs(1)}
	// Flags after the program's name are the program's.
	c.Flags().SetInterspersed(false)
	pods := c.Flags().String("pods", "", "the pods' network")
	nodes := c.Flags().StringArray("node", nil, "address of a node; can be given several times")
	c.RunE = func(_ *cobra.Command, args []string) error {
		prefix, err := netip.ParsePrefix(*pods)
		if err != nil {
			return fmt.Errorf("--pods: %w", err)
		}
		var addresses []netip.Addr
		for _, text := range *nodes {
			address, err := netip.ParseAddr(text)
			if err != nil {
				return fmt.Errorf("--node: %w", err)
			}
			addresses = append(addresses, address)
		}
		return containerized.EnterRouted(prefix, addresses, args)
	}
	return c
}

func administerCommand(chosen *chosen) *cobra.Command {
	c := &cobra.Command{Use: "administer --data-dir DIR --server URL --kubeconfig FILE",
		Short: "Install the add-ons and give the user a kubeconfig", Args: daemon.NoArgs}
	server := c.Flags().String("server", "", "the API server for the user")
	kubeconfig := c.Flags().String("kubeconfig", "", "the user's kubeconfig; it is removed at the end")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		config, err := datadir.Load(chosen.dataDir)
		if err != nil {
			return err
		}
		config.Addons = addons.Files
		return containerized.Administer(cmd.Context(), config, *server, *kubeconfig,
			slog.New(slog.NewTextHandler(os.Stderr, nil)).With("component", "administrator"))
	}
	return c
}
