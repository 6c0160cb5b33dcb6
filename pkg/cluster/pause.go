package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
)

const (
	// renewPatience bounds the wait, after a pause, for nodes to renew their leases. Nothing is lost meanwhile, as the
	// controller managers are held. Kubelets renew every 10 s; an emulated or overloaded machine needs several times
	// that.
	renewPatience = 2 * time.Minute
)

// paused reports whether the cluster's processes are frozen.
func paused(c plan.Config) bool {
	is, err := cgroup.FreezerOf(c.Mark()).IsFrozen()
	return is && err == nil
}

// notRunning says why a cluster that does not answer does not.
func notRunning(c plan.Config) error {
	if paused(c) {
		return fmt.Errorf("the cluster in %s is paused (bonsai resume)", c.DataDir)
	}
	return fmt.Errorf("the cluster in %s is not running (bonsai up)", c.DataDir)
}

// Pause freezes every process of the cluster in dataDir, containers too, where it is. They keep their memory and use no
// CPU.
func Pause(ctx context.Context, dataDir string) error {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return err
	}
	if paused(c) {
		return nil
	}
	if !running(ctx, c) {
		return notRunning(c)
	}
	return pause(ctx, c)
}

func pause(ctx context.Context, c plan.Config) error {
	if err := cgroup.FreezerOf(c.Mark()).Set(ctx, true); err != nil {
		return errors.Join(fmt.Errorf("freeze the cluster's processes: %w", err),
			cgroup.FreezerOf(c.Mark()).Set(context.WithoutCancel(ctx), false))
	}
	return nil
}

// Resume lets a paused cluster go on.
func Resume(ctx context.Context, dataDir string) error {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return err
	}
	lock, err := machine.Lock(ctx) // who else resumes it holds the controller managers for a while
	if err != nil {
		return err
	}
	defer lock.Close()
	if paused(c) {
		return resume(ctx, c)
	}
	if !running(ctx, c) {
		return notRunning(c)
	}
	return signalManagers(c, syscall.SIGCONT)
}

// resume thaws all but the controller manager, which goes on when every node has renewed its lease: by the clock, all
// nodes have been silent for as long as the pause took, and it would give them up.
func resume(ctx context.Context, c plan.Config) (err error) {
	defer func() { err = errors.Join(err, signalManagers(c, syscall.SIGCONT)) }()
	if err := signalManagers(c, syscall.SIGSTOP); err != nil {
		return err
	}
	if err := cgroup.FreezerOf(c.Mark()).Set(ctx, false); err != nil {
		return fmt.Errorf("thaw the cluster's processes: %w", err)
	}
	if c.Joined != nil {
		return nil // who sees the leases is elsewhere
	}
	ctx, cancel := context.WithTimeoutCause(ctx, renewPatience,
		errors.New("the nodes do not renew their leases (bonsai status)"))
	defer cancel()
	return client.WaitLeases(ctx, c)
}

// signalManagers holds the controller managers (SIGSTOP), or lets them go on (SIGCONT): also those that a resume held
// which was killed.
func signalManagers(c plan.Config, signal syscall.Signal) error {
	managers, err := processesOf(c, "kube-controller-manager")
	if err != nil {
		return err
	}
	for _, pid := range managers {
		// one that has ended is none
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal the controller manager, process %d: %w", pid, err)
		}
	}
	return nil
}

// processesOf returns the pids of the control plane's processes that run the cluster's binary of that name.
func processesOf(c plan.Config, name string) ([]int, error) {
	groups, err := cgroup.Find(c.Mark())
	if err != nil {
		return nil, err
	}
	all, err := groups.Processes("")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, pid := range all {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if argv0, _, _ := strings.Cut(string(line), "\x00"); err == nil && argv0 == c.Bin(name) {
			found = append(found, pid)
		}
	}
	return found, nil
}
