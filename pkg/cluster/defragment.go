package cluster

import (
	"context"
	"io"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/etcd"
)

// Defragment gives back what the etcds of the cluster in dataDir do not use of their files, and has those take writes
// again that are full. It takes no lock of the machine. An etcd does not answer while its file is rewritten.
func Defragment(ctx context.Context, dataDir string, out io.Writer) error {
	c, err := datadir.LoadControlPlane(dataDir)
	if err != nil {
		return err
	}
	if paused(c) || !running(ctx, c) {
		return notRunning(c)
	}
	etcds, err := etcd.Of(c)
	if err != nil {
		return err
	}
	return etcd.Defragment(ctx, etcds, out)
}
