package start

import (
	"context"
	"errors"
	"os"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/teardown"
)

// CleanUp ends and removes everything on the host that carries the cluster's mark: processes, mounts, network,
// cgroups. Nothing of value is in it. It asks a supervisor that answers to end in order first.
// If ctx ends before the processes have, they keep the rest.
func CleanUp(ctx context.Context, c plan.Config) error {
	err := teardown.Stop(ctx, c.Layout(), c.Mark())
	if err != nil && ctx.Err() != nil {
		return err
	}
	return errors.Join(err, network.Remove(ctx, c), host.UnmountBelow(c.DataDir),
		teardown.RemoveCgroups(ctx, c.Mark(), ""), host.IgnoreMissing(os.Remove(c.Layout().Started())))
}

// Finish notes that all steps of the start have been taken. Before that, a cluster whose nodes are Ready may still lack
// its add-ons and the user's context, because the command that started it has ended early.
func Finish(c plan.Config) error { return host.WriteFile(c.Layout().Started(), nil) }

// IsFinished reports whether all steps of the start of the cluster that runs have been taken.
func IsFinished(c plan.Config) bool {
	_, err := os.Stat(c.Layout().Started())
	return err == nil
}
