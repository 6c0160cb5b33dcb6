package cluster

import (
	"context"
	"log/slog"

	"bonsai/pkg/cluster/containerized"
	"bonsai/pkg/cluster/node"
)

// RunNode is the life of a node's init process (node.Run). A node in a container also does for its pods what the host
// does elsewhere (containerized.StandAlone).
func RunNode(ctx context.Context, n *node.Config, log *slog.Logger) error {
	edge := func(context.Context) (func(), error) { return func() {}, nil }
	if n.Containerized {
		edge = func(ctx context.Context) (func(), error) { return containerized.StandAlone(ctx, n, log) }
	}
	return node.Run(ctx, n, edge, log)
}
