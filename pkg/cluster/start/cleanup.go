package start

import (
	"context"
	"errors"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/teardown"
)

// CleanUp ends and removes everything on the host that carries the cluster's mark: processes, mounts, network,
// cgroups. Nothing of value is in it. It asks a supervisor that answers to end in order first.
func CleanUp(ctx context.Context, c plan.Config) error {
	return errors.Join(teardown.Stop(ctx, c.Layout(), c.Mark()), network.Remove(ctx, c), host.UnmountBelow(c.DataDir),
		teardown.RemoveCgroups(ctx, c.Mark(), ""))
}
