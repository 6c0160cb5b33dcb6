package supervisor

import (
	"context"

	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/plan"
)

// ParentGroup finds the group below which a supervisor may make the groups of its cluster (systemd.ScopeGroup).
type ParentGroup func(ctx context.Context, mark, dataDir string) (string, error)

// beginGroups makes the groups of this life below the group that parent returns, and moves this process into that of
// the control plane.
func beginGroups(ctx context.Context, c plan.Config, parent ParentGroup) (cgroup.Groups, error) {
	below, err := parent(ctx, c.Mark(), c.DataDir)
	if err != nil {
		return cgroup.Groups{}, err
	}
	groups, err := cgroup.Below(below, c.Mark())
	if err != nil {
		return groups, err
	}
	for _, step := range []func() error{
		func() error { return groups.Make(cgroup.ControlPlane) },
		func() error { return groups.Enter(cgroup.ControlPlane) },
		groups.HandDown, // last: on v2 a group with processes hands no controllers down
	} {
		if err := step(); err != nil {
			return groups, err
		}
	}
	return groups, nil
}
