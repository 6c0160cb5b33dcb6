package cluster

import (
	"context"
	"io"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/logs"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
)

// ExportLogs writes the logs and the state of the cluster in dataDir, running or not, into the new directory to, for a
// bug report (logs.Export).
func ExportLogs(ctx context.Context, dataDir, to string) error {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return err
	}
	return logs.Export(ctx, c, to, func(w io.Writer) error { return PrintStatus(ctx, dataDir, w) },
		func(w io.Writer) error { return PrintVersions(ctx, c.BinDir, w) })
}

// PrintVersions prints the versions of the programs on which a cluster with its binaries in binDir runs, and of the
// kernel.
func PrintVersions(ctx context.Context, binDir string, out io.Writer) error {
	c := plan.Config{BinDir: binDir}
	return logs.PrintVersions(ctx, c.Bin("etcd"), node.Containerd, out)
}
