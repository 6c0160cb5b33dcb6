package cluster

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/pause"
	"bonsai/pkg/cluster/plan"
)

// renewPatience bounds the wait, after a pause, for nodes to renew their leases. Nothing is lost meanwhile, as the
// controller managers are held. Kubelets renew every 10 s; an emulated or overloaded machine needs several times that.
const renewPatience = 2 * time.Minute

// Pause freezes every process of the cluster in dataDir, those in containers too. They keep their memory and use no
// CPU. It holds the machine's lock: a command that freezes the cluster for a while, such as snapshot save, would undo
// the pause. A start that is under way and has given the lock back waits longer, and may run out of patience.
func Pause(ctx context.Context, dataDir string) error {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return err
	}
	lock, err := machine.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if paused(c) {
		return nil
	}
	if !running(ctx, c) {
		return notRunning(c)
	}
	return pause.Freeze(ctx, c.Mark())
}

// Resume lets a paused cluster go on. In a cluster that is not paused it lets the controller managers go on, which a
// killed Resume may have left held.
func Resume(ctx context.Context, dataDir string) error {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return err
	}
	lock, err := machine.Lock(ctx) // another command that resumes it holds the controller managers for a while
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

// resume thaws the cluster's processes. The controller managers go on when every node has renewed its lease. The caller
// holds the machine's lock. renewPatience bounds the wait for the leases.
func resume(ctx context.Context, c plan.Config) error {
	return pause.Thaw(ctx, c.Mark(), c.Bin("kube-controller-manager"), func(ctx context.Context) error {
		if c.Joined != nil {
			return nil // the controller managers are on another machine
		}
		ctx, cancel := context.WithTimeoutCause(ctx, renewPatience,
			errors.New("the nodes do not renew their leases (bonsai status)"))
		defer cancel()
		return client.WaitLeases(ctx, c)
	})
}

// signalManagers holds the controller managers, or lets them go on (pause.Signal).
func signalManagers(c plan.Config, signal syscall.Signal) error {
	return pause.Signal(c.Mark(), c.Bin("kube-controller-manager"), signal)
}

// paused reports whether the cluster's processes are frozen.
func paused(c plan.Config) bool { return pause.IsPaused(c.Mark()) }

// notRunning says why a cluster that does not answer does not.
func notRunning(c plan.Config) error {
	if paused(c) {
		return fmt.Errorf("the cluster in %s is paused (bonsai resume)", c.DataDir)
	}
	return fmt.Errorf("the cluster in %s is not running (bonsai up)", c.DataDir)
}
