package cluster

import (
	"context"

	"bonsai/pkg/cluster/image"
)

// Images returns the image stores of the nodes of the cluster in dataDir.
func Images(dataDir string) (image.Stores, error) {
	c, err := LoadExisting(dataDir)
	if err != nil {
		return image.Stores{}, err
	}
	return c.images(), nil
}

// images returns the image stores of the cluster's nodes.
func (c Config) images() image.Stores {
	config := NodeConfig{BinDir: c.BinDir}
	return image.Stores{
		Nodes: c.nodeNames(), CTR: config.ctr(), Socket: containerdSocket, Spool: c.layout().run(),
		PID: func(ctx context.Context, node string) (int, error) { return NodePID(ctx, c.DataDir, node) },
	}
}
