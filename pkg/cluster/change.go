package cluster

import (
	"context"
	"errors"
	"fmt"

	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// changeFrom has the supervisor of the running cluster old go on with c, of which canBecome holds, or changes nothing.
func changeFrom(ctx context.Context, c plan.Config, home machine.Home, old plan.Config) error {
	if err := preflight(ctx, c); err != nil {
		return err
	}
	m, err := survey(c, home)
	if err != nil {
		return err
	}
	// Whether a port is free shows when the supervisor takes it: it has some of them itself.
	if claims := m.Claimed(c); len(claims) > 0 {
		return plan.DescribeClaims(claims)
	}
	supervisor := c.Layout().Socket("supervisor")
	if err := errors.Join(datadir.Save(c), supervise.Reload(ctx, supervisor)); err != nil {
		return errors.Join(err, datadir.Save(old), supervise.Reload(context.WithoutCancel(ctx), supervisor))
	}
	return nil
}

// loadOnNodes imports local images on nodes that run, once they are Ready: a node's own registry has those that there
// were at its start.
func loadOnNodes(ctx context.Context, c plan.Config, images []string) error {
	if err := client.WaitNodes(ctx, c); err != nil {
		return err
	}
	stores := imageStores(c)
	for _, name := range images {
		if _, err := stores.LoadArchive(ctx, c.Image(name), nil); err != nil {
			return fmt.Errorf("%s: %w", c.Image(name), err)
		}
	}
	return nil
}
