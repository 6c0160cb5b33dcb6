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
	"bonsai/pkg/pidfd"
)

// restarted are the programs that Restart restarts, in this order: Kubernetes lets the API server be newer than its
// clients, but not older. The supervisor, the nodes' inits and containerd go on, since all else is below them.
//
// Programs of one group end one after the other, and come back together. An API server ends before its etcd: etcd's end
// waits for seconds for clients with open watches, and answers no write meanwhile.
var restarted = [][]string{{"kube-apiserver", "etcd"}, {"kube-controller-manager"}, {"kube-scheduler"}, {"kubelet"},
	{"kube-proxy"}}

// returnPatience bounds the wait for a process to be back, and for the cluster to be ready after that: a program that
// does not start is tried again within seconds.
const returnPatience = 2 * time.Minute

// settled is how long a program must have run to count as one that stays. One that does not accept its flags, as when
// the new release lacks one that the user has given, ends sooner, and is tried again and again.
const settled = 3 * time.Second

// Restart restarts the components of the running cluster in dataDir, one group after the other, and prints each to out.
// They start from the programs that are in their places now, with the flags that they had. Pods go on. It begins once
// no other machine of the cluster restarts its control plane (inTurn), and all API servers are ready, also those of
// other machines. After each group it waits for them again and for the nodes of this machine, and stops at the first
// that does not come back: those that follow still run what they ran before. In the end it waits until all have run for
// a while.
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
	if err := datadir.CheckRelease(c.Layout()); err != nil {
		return err
	}
	printer := steps.NewPrinter(out)
	return inTurn(ctx, c, printer, func(ctx context.Context) error { return restartAll(ctx, c, printer) })
}

// restartAll is Restart in this machine's turn.
func restartAll(ctx context.Context, c plan.Config, printer steps.Printer) error {
	all, down, err := status.Processes(ctx, c)
	if err := errors.Join(append(down, err)...); err != nil {
		return err
	}
	err = printer.Run("Wait for the control plane", func() error {
		ctx, cancel := context.WithTimeoutCause(ctx, returnPatience,
			fmt.Errorf("not ready after %v, so nothing was restarted (bonsai status, bonsai logs)", returnPatience))
		defer cancel()
		return waitServers(ctx, c)
	})
	if err != nil {
		return err
	}
	if c.HasControlPlane() { // from here on the new programs write into etcd
		if err := datadir.SaveRelease(c.Layout()); err != nil {
			return err
		}
	}
	var done []status.Process
	for _, b := range batches(all) {
		err := printer.Run("Restart "+title(b.group), func() error {
			if b.settled {
				if err := awaitSettled(ctx, c, done); err != nil {
					return err
				}
			}
			return restart(ctx, c, b.group)
		})
		if err != nil {
			return err
		}
		done = append(done, b.group...)
	}
	return printer.Run("Wait until they stay", func() error { return awaitSettled(ctx, c, done) })
}

// batch is a group of processes that restart together. settled: only once all before it have run for a while.
type batch struct {
	group   []status.Process
	settled bool
}

// batches returns what is restarted, in this order. A program that listens may still end soon, again and again. So the
// first of several has settled before the second restarts, and the control plane before any node: then all others still
// run what they ran before.
func batches(all []status.Process) []batch {
	var found []batch
	for _, programs := range restarted {
		for i, group := range groups(all, programs) {
			found = append(found, batch{group, i == 1 || i == 0 && programs[0] == "kubelet"})
		}
	}
	return found
}

// awaitSettled waits until all that have been restarted have run for a while.
func awaitSettled(ctx context.Context, c plan.Config, done []status.Process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, returnPatience,
		fmt.Errorf("not all have run for %v after %v (bonsai status, bonsai logs)", settled, returnPatience))
	defer cancel()
	return awaitBack(ctx, c, done, func(int) bool { return false })
}

// groups returns the processes that run programs, in their order: one group for each control plane or node.
func groups(all []status.Process, programs []string) [][]status.Process {
	var found [][]status.Process
	for _, first := range all {
		if programOf(first.Name) != programs[0] {
			continue
		}
		group := []status.Process{first}
		for _, program := range programs[1:] {
			name := program + strings.TrimPrefix(first.Name, programs[0])
			for _, p := range all {
				if p.Where == first.Where && p.Name == name {
					group = append(group, p)
				}
			}
		}
		found = append(found, group)
	}
	return found
}

func title(group []status.Process) string {
	var names []string
	for _, p := range group {
		names = append(names, p.Name)
	}
	title := strings.Join(names, " and ")
	if at := group[0].Where; at != "host" {
		title += " of " + at
	}
	return title
}

// ofMember is what the name of a process has behind its program's, if there are several control planes.
var ofMember = regexp.MustCompile(`-cp[0-9]+$`)

func programOf(process string) string { return ofMember.ReplaceAllString(process, "") }

// restart ends a group of processes, and waits until others are in their places and the cluster is ready.
func restart(ctx context.Context, c plan.Config, group []status.Process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, returnPatience,
		fmt.Errorf("%s: not back after %v (bonsai status, bonsai logs)", title(group), returnPatience))
	defer cancel()
	for _, p := range group {
		if err := end(ctx, p); err != nil {
			return err
		}
	}
	ended := time.Now()
	// A program listens only once it has accepted its flags.
	err := awaitBack(ctx, c, group, func(pid int) bool { return host.Listens("/proc", pid) })
	if err != nil {
		return err
	}
	if err := waitServers(ctx, c); err != nil {
		return err
	}
	if first := group[0]; programOf(first.Name) == "kubelet" { // its node counts as Ready for a while without it
		if err := client.WaitRenewal(ctx, c, first.Where, ended); err != nil {
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
		if err := pidfd.Signal(p.PID, func() bool { return isStill(p) }, s.signal); err != nil {
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

// awaitBack waits until other processes are in the places of a group's, and serve or have settled. A question that is
// not answered is asked again.
func awaitBack(ctx context.Context, c plan.Config, group []status.Process, serves func(pid int) bool) error {
	var missing error // by the last answer
	err := host.Poll(ctx, 50*time.Millisecond, func() (bool, error) {
		all, _, err := status.Processes(ctx, c)
		if err != nil {
			return false, nil
		}
		missing = areBack(group, all, time.Now(), serves)
		return missing == nil, nil
	})
	return errors.Join(err, missing)
}

// areBack returns an error unless, among all, other processes are in the places of a group's, and each of them serves
// or has settled.
func areBack(group, all []status.Process, now time.Time, serves func(pid int) bool) error {
	for _, was := range group {
		i := slices.IndexFunc(all, func(p status.Process) bool { return p.Where == was.Where && p.Name == was.Name })
		if i < 0 {
			return fmt.Errorf("%s is no process of %s any more", was.Name, was.Where)
		}
		is := all[i]
		if is.PID == 0 || is.PID == was.PID || now.Sub(is.Started) < settled && !serves(is.PID) {
			return fmt.Errorf("it does not stay: %s", is.Epitaph())
		}
	}
	return nil
}
