// Package teardown ends the processes of a cluster, in order if they answer and by force if not, and removes its
// cgroups. It finds them by the cluster's mark, so that it works however the cluster's last life ended.
package teardown

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
	"bonsai/pkg/pidfd"
)

// answerPatience bounds the wait for the answer of a supervisor that has just begun.
const answerPatience = 5 * time.Second

// Stop ends the supervisor and with it all processes, and then, by their cgroups, the processes that it did not reach.
func Stop(ctx context.Context, l plan.Layout, mark string) error {
	freezer := cgroup.FreezerOf(mark)
	if frozen, err := freezer.IsFrozen(); frozen && err == nil { // a frozen process handles no signal
		if err := freezer.Set(ctx, false); err != nil {
			return fmt.Errorf("thaw the cluster's processes: %w", err)
		}
	}
	if err := stopInOrder(ctx, l); err != nil {
		return err
	}
	return Kill(ctx, mark)
}

// stopInOrder asks the supervisor to end, and waits until it has, for supervise.StopPatience at most. A supervisor that
// holds the data directory and does not answer has just begun, or is about to end because its starter has gone: it gets
// answerPatience. Kill ends whatever remains.
func stopInOrder(ctx context.Context, l plan.Layout) error {
	inOrder, cancel := context.WithTimeout(ctx, supervise.StopPatience)
	defer cancel()
	began, asked := time.Now(), false
	err := host.Poll(inOrder, 10*time.Millisecond, func() (bool, error) {
		if !datadir.IsLocked(l.Lock()) {
			return true, nil
		}
		if asked {
			return false, nil
		}
		status, err := supervise.Ask(inOrder, l.Socket("supervisor"))
		if err != nil {
			return time.Since(began) > answerPatience, nil
		}
		// It may have ended since its answer. It is asked again while its process is held, and the signal goes to that
		// process only if it still answers. Else the next round asks whoever is there then.
		isStill := func() bool {
			again, err := supervise.Ask(inOrder, l.Socket("supervisor"))
			asked = err == nil && again.PID == status.PID
			return asked
		}
		if err := pidfd.Signal(status.PID, isStill, syscall.SIGTERM); err != nil {
			return false, fmt.Errorf("stop the supervisor, process %d: %w", status.PID, err)
		}
		return false, nil
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return nil
	}
	return err
}

// Kill kills every process in the cluster's cgroups until there is none. The kernel ends everything in a node together
// with the node's init.
func Kill(ctx context.Context, mark string) error {
	groups, err := cgroup.Find(mark)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cgroup.KillPatience,
		fmt.Errorf("processes that do not die within %s of SIGKILL", cgroup.KillPatience))
	defer cancel()
	return groups.Kill(ctx, "")
}

// RemoveCgroups removes the cluster's groups below name, or all of them for "".
func RemoveCgroups(ctx context.Context, mark, name string) error {
	groups, err := cgroup.Find(mark)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cgroup.KillPatience)
	defer cancel()
	return groups.Remove(ctx, name)
}
