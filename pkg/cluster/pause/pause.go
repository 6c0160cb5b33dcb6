// Package pause freezes a cluster's processes where they are, and lets them go on without the controller manager taking
// the pause for a failure of the nodes.
package pause

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/pidfd"
)

// IsPaused reports whether the processes of the cluster with the mark are frozen.
func IsPaused(mark string) bool {
	is, err := cgroup.FreezerOf(mark).IsFrozen()
	return is && err == nil
}

// Freeze freezes every process of the cluster, those in containers too. They keep their memory and use no CPU. If the
// kernel cannot freeze all of them, it thaws them again.
func Freeze(ctx context.Context, mark string) error {
	freezer := cgroup.FreezerOf(mark)
	if err := freezer.Set(ctx, true); err != nil {
		return errors.Join(fmt.Errorf("freeze the cluster's processes: %w", err),
			freezer.Set(context.WithoutCancel(ctx), false))
	}
	return nil
}

// Thaw lets the processes go on, except the controller managers, which go on when renewed has returned: by the clock
// all nodes have been silent for as long as the pause took, and a controller manager would evict their pods. managers
// is the path of the controller managers' program.
func Thaw(ctx context.Context, mark, managers string, renewed func(context.Context) error) (err error) {
	defer func() { err = errors.Join(err, Signal(mark, managers, syscall.SIGCONT)) }()
	if err := Signal(mark, managers, syscall.SIGSTOP); err != nil {
		return err
	}
	if err := cgroup.FreezerOf(mark).Set(ctx, false); err != nil {
		return fmt.Errorf("thaw the cluster's processes: %w", err)
	}
	return renewed(ctx)
}

// Signal holds the controller managers (SIGSTOP), or lets them go on (SIGCONT). The latter also helps those that a
// killed Thaw left held.
func Signal(mark, managers string, signal syscall.Signal) error {
	pids, err := processesOf(mark, managers)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := pidfd.Signal(pid, func() bool { return runs(pid, managers) }, signal); err != nil {
			return fmt.Errorf("signal the controller manager, process %d: %w", pid, err)
		}
	}
	return nil
}

// processesOf returns the pids of the control plane's processes whose first argument is path. It looks into the control
// plane's group alone: a pod may give its processes any arguments, but all of them are in the groups of nodes. It does
// not ask the supervisor, which is frozen itself when Thaw begins.
func processesOf(mark, path string) ([]int, error) {
	groups, err := cgroup.Find(mark)
	if err != nil {
		return nil, err
	}
	all, err := groups.Processes(cgroup.ControlPlane)
	if err != nil {
		return nil, err
	}
	var found []int
	for _, pid := range all {
		if runs(pid, path) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// runs reports whether the first argument of a process is path.
func runs(pid int, path string) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	argv0, _, _ := strings.Cut(string(line), "\x00")
	return err == nil && argv0 == path
}
