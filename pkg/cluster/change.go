package cluster

import (
	"context"
	"errors"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/start"
	"bonsai/pkg/cluster/supervise"
)

// changeFrom makes the supervisor of the running cluster old continue as c (plan.Config.CanBecome). If the supervisor
// cannot, changeFrom restores the earlier configuration. The caller holds the machine's lock. Reload returns when the
// supervisor has done the change, so an error is known before the earlier configuration is needed.
func changeFrom(ctx context.Context, c plan.Config, home machine.Home, old plan.Config) error {
	if err := start.CheckChange(ctx, c, home); err != nil {
		return err
	}
	supervisor := c.Layout().Socket("supervisor")
	if err := errors.Join(datadir.Save(c), supervise.Reload(ctx, supervisor)); err != nil {
		return errors.Join(err, datadir.Save(old), supervise.Reload(context.WithoutCancel(ctx), supervisor))
	}
	return nil
}
