package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
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

// endEarlierLife ends and removes everything on the host that carries the cluster's mark: processes, mounts, network, cgroups.
// Nothing of value is in it. A supervisor that answers is asked to end in order first.
func (c Config) endEarlierLife(ctx context.Context) error {
	return errors.Join(c.stop(ctx), c.removeNetwork(ctx), host.UnmountBelow(c.DataDir), c.removeCgroups(ctx))
}

// stop ends the supervisor and with it all processes, and then, by their cgroups, those that its end did not reach.
func (c Config) stop(ctx context.Context) error {
	if c.paused() { // what is frozen hears no signal
		if err := cgroup.FreezerOf(c.mark()).Set(ctx, false); err != nil {
			return fmt.Errorf("thaw the cluster's processes: %w", err)
		}
	}
	if err := c.stopInOrder(ctx); err != nil {
		return err
	}
	return c.killProcesses(ctx)
}

// stopInOrder asks the supervisor to end, and waits for that. One that holds the data directory and does not answer has just begun, or is
// about to end as who started it is gone: it is given answerPatience. What does not end in time is left to be killed.
func (c Config) stopInOrder(ctx context.Context) error {
	inOrder, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	began, asked := time.Now(), false
	err := host.Poll(inOrder, 10*time.Millisecond, func() (bool, error) {
		if !c.locked() {
			return true, nil
		}
		if asked {
			return false, nil
		}
		status, err := supervise.Ask(inOrder, c.layout().socket("supervisor"))
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

// killProcesses kills every process in the cluster's cgroups until there is none. The kernel ends what is in a node together
// with the node's init.
func (c Config) killProcesses(ctx context.Context) error {
	groups, err := cgroup.Find(c.mark())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, killPatience, fmt.Errorf("processes that do not die within %s of SIGKILL", killPatience))
	defer cancel()
	return groups.Kill(ctx, "")
}

// removeCgroups removes all of the cluster's groups.
func (c Config) removeCgroups(ctx context.Context) error {
	groups, err := cgroup.Find(c.mark())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	return groups.Remove(ctx, "")
}

// locked tells whether a supervisor holds the data directory.
func (c Config) locked() bool {
	if _, err := os.Stat(c.layout().lock()); err != nil {
		return false
	}
	lock, err := lockData(c.layout().lock())
	if err != nil {
		return true
	}
	lock.Close()
	return false
}
