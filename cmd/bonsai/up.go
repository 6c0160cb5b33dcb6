package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
	"bonsai/deploy/addons"
	"bonsai/pkg/cluster"
)

func upCommand(dataDir *string) *cobra.Command {
	defaults := cluster.Default("", "")
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster and wait until it is ready",
		Args:  daemon.NoArgs,
	}
	nodes := c.Flags().Int("nodes", defaults.Nodes, "number of nodes, each in namespaces of its own (1 to 9)")
	egress := c.Flags().Bool("egress", defaults.Egress, "let nodes and pods reach what this machine reaches, masqueraded")
	port := c.Flags().Int("api-port", defaults.APIPort, "port of the API server")
	mirror := c.Flags().String("registry-mirror", "", "URL of a registry, reachable from the nodes, that stands for every registry")
	c.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait for the cluster to be ready")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		config := cluster.Default(*dataDir, filepath.Dir(self))
		config.Nodes, config.Egress, config.APIPort, config.RegistryMirror, config.Addons = *nodes, *egress, *port, *mirror, addons.Files
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("not ready after %s", timeout))
		defer cancel()
		began := time.Now()
		started, err := cluster.Up(ctx, config, self, cmd.OutOrStdout())
		if err != nil {
			return err
		}
		if !started {
			fmt.Fprintf(cmd.OutOrStdout(), "The cluster in %s is already up: nothing changed.\n", config.DataDir)
			return nil
		}
		fmt.Fprintf(cmd.OutOrStdout(), upMessage, time.Since(began).Seconds(), config.Context, filepath.Dir(self), cluster.BusyboxImage)
		return nil
	}
	return c
}

const upMessage = `Ready in %.2f s. The context %q is in your kubeconfig. Try:
  export PATH=%s:$PATH
  kubectl get pods -A -o wide
  kubectl run -it --rm try --image=%s -- sh
`

func downCommand(dataDir *string) *cobra.Command {
	c := &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster and remove everything it made",
		Args:  daemon.NoArgs,
	}
	keep := c.Flags().Bool("keep-data", false, "keep the data directory, so that up continues with the same cluster")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if os.Geteuid() != 0 {
			return errors.New("must be root")
		}
		found, err := cluster.Down(cmd.Context(), *dataDir, *keep, cmd.OutOrStdout())
		if err == nil && !found {
			fmt.Fprintf(cmd.OutOrStdout(), "No cluster in %s: nothing to do.\n", *dataDir)
		}
		return err
	}
	return c
}
