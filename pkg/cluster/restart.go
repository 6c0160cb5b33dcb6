package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/status"
	"bonsai/pkg/cluster/steps"
	"bonsai/pkg/cluster/supervise"
)

// restarted are the programs that Restart restarts, in this order: Kubernetes lets the API server be newer than its
// clients, but not older. The supervisor, the nodes' inits and containerd go on, since all else is below them.
var restarted = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"}

// returnPatience bounds the wait for a process to be back, and for the cluster to be ready after that: a program that
// does not start is tried again within seconds.
const returnPatience = 2 * time.Minute

// Restart restarts the components of the running cluster in dataDir, one after the other, and prints each to out. They
// start from the programs that are in their places now, with the flags that they had. Pods go on. It waits after each
// for the API server and for the nodes of this machine, and stops at the first that does not come back: those that
// follow still run what they ran before.
func Restart(ctx context.Context, dataDir string, out io.Writer) error {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return err
	}
	lock, err := machine.Lock(ctx) // no other command starts or stops anything meanwhile
	if err != nil {
		return err
	}
	defer lock.Close()
	if paused(c) || !running(ctx, c) {
		return notRunning(c)
	}
	if c.HasControlPlane() {
		if err := datadir.SaveRelease(c.Layout()); err != nil {
			return err
		}
	}
	all, down, err := status.Processes(ctx, c)
	if err := errors.Join(append(down, err)...); err != nil {
		return err
	}
	printer := steps.NewPrinter(out)
	for _, program := range restarted {
		for _, p := range all {
			if programOf(p.Name) != program {
				continue
			}
			title := "Restart " + p.Name
			if p.Where != "host" {
				title += " of " + p.Where
			}
			if err := printer.Run(title, func() error { return restart(ctx, c, p) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofMember is what the name of a process has behind its program's, if there are several control planes.
var ofMember = regexp.MustCompile(`-cp[0-9]+$`)

func programOf(process string) string { return ofMember.ReplaceAllString(process, "") }

// restart ends a process, and waits until another one is in its place and the cluster is ready.
func restart(ctx context.Context, c plan.Config, p status.Process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, returnPatience,
		fmt.Errorf("%s is not back after %v (bonsai status, bonsai logs)", p.Name, returnPatience))
	defer cancel()
	if err := end(ctx, p); err != nil {
		return err
	}
	ended := time.Now()
	if err := host.Poll(ctx, 50*time.Millisecond, func() (bool, error) { return isBack(ctx, c, p), nil }); err != nil {
		return err
	}
	if err := client.WaitReady(ctx, c); err != nil {
		return err
	}
	if programOf(p.Name) == "kubelet" { // its node counts as Ready for a while without it
		if err := client.WaitRenewal(ctx, c, p.Where, ended); err != nil {
			return err
		}
	}
	return host.Poll(ctx, 50*time.Millisecond, func() (bool, error) { return status.AllReady(ctx, c), nil })
}

// end ends a process as its supervisor does. The supervisor starts it again.
func end(ctx context.Context, p status.Process) error {
	if !isStill(p) {
		return nil
	}
	for _, s := range []struct {
		signal   syscall.Signal
		patience time.Duration
	}{{syscall.SIGTERM, supervise.StopGrace}, {syscall.SIGKILL, returnPatience}} {
		if err := syscall.Kill(p.PID, s.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end %s, process %d: %w", p.Name, p.PID, err)
		}
		wait, cancel := context.WithTimeout(ctx, s.patience)
		err := host.Poll(wait, 20*time.Millisecond, func() (bool, error) { return !isStill(p), nil })
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("%s, process %d, does not end", p.Name, p.PID)
}

// isStill reports whether the process with p's number runs p's program: it may have ended, and the number be another's.
func isStill(p status.Process) bool {
	if p.PID == 0 {
		return false
	}
	line, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/cmdline")
	program, _, _ := strings.Cut(string(line), "\x00")
	return err == nil && filepath.Base(program) == programOf(p.Name)
}

// isBack reports whether another process than p is in its place. A question that is not answered is asked again.
func isBack(ctx context.Context, c plan.Config, p status.Process) bool {
	all, _, err := status.Processes(ctx, c)
	return err == nil && slices.ContainsFunc(all, func(now status.Process) bool {
		return now.Where == p.Where && now.Name == p.Name && now.PID != 0 && now.PID != p.PID
	})
}
