// Command bonsai runs a whole local cluster: up, down, status, logs, exec into a node, and images.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/cluster"
)

func main() { os.Exit(daemon.Main(command())) }

// defaultDataDir is where a cluster lives unless --data-dir or $BONSAI_DATA says otherwise.
const defaultDataDir = "/var/lib/bonsai"

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "bonsai",
		Short: "Run a small Kubernetes cluster of real processes on this machine",
	}
	dataDir := defaultDataDir
	if dir := os.Getenv("BONSAI_DATA"); dir != "" {
		dataDir = dir
	}
	root.PersistentPreRunE = func(*cobra.Command, []string) (err error) {
		dataDir, err = cluster.ResolveDataDir(dataDir)
		return err
	}
	root.PersistentFlags().StringVar(&dataDir, "data-dir", dataDir, "directory that holds everything the cluster writes")
	root.AddCommand(upCommand(&dataDir), downCommand(&dataDir), statusCommand(&dataDir), logsCommand(&dataDir), execCommand(&dataDir), imageCommand(&dataDir),
		superviseCommand(&dataDir), nodeEnterCommand(), nodeInitCommand())
	daemon.AddVersion(root)
	return root
}
