package cluster

import (
	"context"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/image"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
)

// Images returns the image stores of the nodes of the cluster in dataDir.
func Images(dataDir string) (image.Stores, error) {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return image.Stores{}, err
	}
	return imageStores(c), nil
}

// imageStores returns the image stores of the cluster's nodes. Their Spool is the run
// directory, which goes with the cluster: an archive that a killed command left there is removed then.
func imageStores(c plan.Config) image.Stores {
	return image.Stores{
		Nodes: c.NodeNames(), CTR: node.CTR, Socket: node.ContainerdSocket, Spool: c.Layout().Run(),
		PID: func(ctx context.Context, node string) (int, error) { return NodePID(ctx, c.DataDir, node) },
	}
}
