package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// Enter is the first step inside a node's namespaces. It moves itself into the node's cgroup, makes that the root of
// a new cgroup namespace, and becomes `self node-init`. A cgroup namespace belongs to a thread until exec makes that
// thread the process. Enter returns only with an error.
//
// Standard input is the line to the supervisor: one byte says that the network cable is there, and the other end
// stays open as long as the supervisor lives.
func Enter(self, path string) error {
	// The byte comes after Keeper's Started hook, which kills everything in the node's group and makes the group again.
	// A process that entered the group earlier would be killed with the rest. If the supervisor ends first, the read
	// fails with EOF.
	if _, err := io.ReadFull(os.Stdin, make([]byte, 1)); err != nil {
		return fmt.Errorf("wait for the network: %w", err)
	}
	n, err := Read(path)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := (cgroup.Groups{Trees: n.Cgroups}).Enter(n.Name); err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("make a cgroup namespace: %w", err)
	}
	if err := host.DieWithParent(os.Stdin); err != nil {
		return err
	}
	return unix.Exec(self, []string{self, "node-init", path}, os.Environ())
}

// Run is a node's init process. edge starts what the node's pods need from it beyond what every node does, and returns
// a function that waits until that has ended. Run returns when ctx ends, and with it everything in the node ends.
//
// The order matters: programs read the files that are written before, containerd pulls its first image from the
// listener that serveImages opens, and the control socket comes last because it tells the supervisor that the node
// runs.
func Run(ctx context.Context, n *Config, edge func(context.Context) (wait func(), err error), log *slog.Logger) error {
	if err := host.LowerOOMScore(host.NodeOOMScore); err != nil {
		return fmt.Errorf("lower the node's OOM score: %w", err)
	}
	if err := unix.Sethostname([]byte(n.Name)); err != nil {
		return fmt.Errorf("set the hostname: %w", err)
	}
	if err := n.mount(); err != nil {
		return err
	}
	if err := n.configureNetwork(); err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(plan.Layout(n.DataDir).NodeSocket(n.Name)), 0o700), n.writeConfigs(),
		n.linkPlugins(cniBinDir, PluginDir(n.BinDir, n.Programs))); err != nil {
		return err
	}
	images, err := listenForImages(log)
	if err != nil {
		return err
	}
	images.offer(n)
	var door *tracesDoor
	if n.Traces {
		if door, err = openTraces(n, log); err != nil {
			return err
		}
	}
	// From the first goroutine on, a return must come after cancel: the deferred Wait runs before the deferred cancel,
	// and would wait forever. A failure above leaves a half-made node behind, which ends with this process.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := supervise.New(ctx, log)
	var running sync.WaitGroup
	defer running.Wait()
	wait, err := edge(ctx)
	if err != nil {
		return err
	}
	running.Go(wait)
	running.Go(func() { images.serve(ctx) })
	if door != nil {
		running.Go(func() { door.serve(ctx) })
	}
	running.Go(func() { reap(ctx, s.Owns) })
	own := supervise.NewChanging(s)
	own.Keep(ctx, n.Processes(log), n.basisOf)
	// Keeper has written another configuration. Containers go on: they are children of their shims, which need neither
	// containerd nor the kubelet.
	reload := func() error {
		now, err := Read(n.path())
		if err != nil {
			return err
		}
		if err := now.writeConfigs(); err != nil {
			return err
		}
		images.offer(now)
		own.Keep(ctx, now.Processes(log), now.basisOf)
		return nil
	}
	err = supervise.Serve(ctx, plan.Layout(n.DataDir).NodeSocket(n.Name), func() supervise.Status {
		return supervise.Status{PID: os.Getpid(), Processes: s.Statuses()}
	}, reload)
	cancel()
	own.Wait()
	return err
}

// reap collects the orphans that the kernel gives to PID 1, above all the shims of containers. It leaves the processes
// that owned names to their own waiters, which would otherwise lose their exit codes.
func reap(ctx context.Context, owned func(pid int) bool) {
	// The kernel merges signals that are pending, so one of them may stand for several children.
	ended := make(chan os.Signal, 16)
	// Notify comes before the first look at the children, so an end between the two leaves a signal.
	signal.Notify(ended, unix.SIGCHLD)
	defer signal.Stop(ended)
	for {
		var again <-chan time.Time
		if !reapOrphans(owned) {
			again = time.After(20 * time.Millisecond) // an owned child stands in front and its waiter is on its way
		}
		select {
		case <-ended:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// reapOrphans reaps until no ended child is left (true) or the next one has an owner (false). waitid(2) always shows
// the same ended child first, so it cannot look behind that one.
func reapOrphans(owned func(pid int) bool) bool {
	for {
		pid, ok := peekEnded()
		if !ok {
			return true
		}
		// Owns has a child from its fork on, because the fork happens under the supervisor's lock. So an ended child
		// that is not owned is an orphan, or one whose own waiter has reaped it already.
		if owned(pid) {
			return false
		}
		if _, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); err == syscall.ECHILD {
			continue // its owner was faster; others may stand behind it
		} else if err != nil {
			return true
		}
	}
}

// peekEnded returns a child that has ended, without reaping it.
func peekEnded() (int, bool) {
	var info unix.Siginfo
	// With WNOHANG, waitid(2) also succeeds if no child has ended, and then leaves si_signo at 0.
	if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil ||
		info.Signo == 0 {
		return 0, false
	}
	return int((*childInfo)(unsafe.Pointer(&info)).pid), true
}

// childInfo is siginfo_t as SIGCHLD fills it (sigaction(2)); x/sys leaves that part opaque.
type childInfo struct {
	signo, errno, code, _ int32
	pid                   int32
}
