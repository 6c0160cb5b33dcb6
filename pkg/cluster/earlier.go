package cluster

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

const (
	// stopPatience is how long a supervisor may take to end in order: nodes, control plane and etcd, stopGrace each.
	stopPatience = 3*supervise.StopGrace + 15*time.Second
	// answerPatience is how long a supervisor that does not answer is taken to be on its way.
	answerPatience = 5 * time.Second
	// killPatience is how long the kernel may take to end killed processes and to empty their cgroups.
	killPatience = 20 * time.Second
)

// endEarlierLife ends and removes everything on the host that carries the cluster's mark: processes, mounts, network,
// cgroups. Nothing of value is in it. A supervisor that answers is asked to end in order first.
func endEarlierLife(ctx context.Context, c plan.Config) error {
	return errors.Join(stop(ctx, c), network.Remove(ctx, c), host.UnmountBelow(c.DataDir), removeCgroups(ctx, c))
}

// stop ends the supervisor and with it all processes, and then, by their cgroups, those that its end did not reach.
func stop(ctx context.Context, c plan.Config) error {
	if paused(c) { // what is frozen hears no signal
		if err := cgroup.FreezerOf(c.Mark()).Set(ctx, false); err != nil {
			return fmt.Errorf("thaw the cluster's processes: %w", err)
		}
	}
	if err := stopInOrder(ctx, c); err != nil {
		return err
	}
	return killProcesses(ctx, c)
}

// stopInOrder asks the supervisor to end, and waits for that. One that holds the data directory and does not answer has
// just begun, or is about to end as who started it is gone: it is given answerPatience. What does not end in time is
// left to be killed.
func stopInOrder(ctx context.Context, c plan.Config) error {
	inOrder, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	began, asked := time.Now(), false
	err := host.Poll(inOrder, 10*time.Millisecond, func() (bool, error) {
		if !datadir.IsLocked(c.Layout().Lock()) {
			return true, nil
		}
		if asked {
			return false, nil
		}
		status, err := supervise.Ask(inOrder, c.Layout().Socket("supervisor"))
		if err != nil {
			return time.Since(began) > answerPatience, nil
		}
		asked = true
		if err := syscall.Kill(status.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
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

// killProcesses kills every process in the cluster's cgroups until there is none. The kernel ends what is in a node
// together with the node's init.
func killProcesses(ctx context.Context, c plan.Config) error {
	groups, err := cgroup.Find(c.Mark())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, killPatience,
		fmt.Errorf("processes that do not die within %s of SIGKILL", killPatience))
	defer cancel()
	return groups.Kill(ctx, "")
}

// removeCgroups removes all of the cluster's groups.
func removeCgroups(ctx context.Context, c plan.Config) error {
	groups, err := cgroup.Find(c.Mark())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	return groups.Remove(ctx, "")
}
