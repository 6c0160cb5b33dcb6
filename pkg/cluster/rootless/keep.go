package rootless

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/host/door"
	"bonsai/pkg/cluster/supervise"
)

const (
	// beginPatience bounds the time until the namespaces have their network.
	// endPatience bounds the wait for clusters to end after the keeper has received a signal.
	beginPatience = 30 * time.Second
	endPatience   = supervise.StopPatience
)

// The groups below the keeper's scope. machineGroup is the root of the tree that the namespaces see. Commands and the
// first process are in leaves of it, so that it can hand controllers down to the clusters beside them.
const (
	keeperGroup   = "keeper"
	machineGroup  = "machine"
	initGroup     = machineGroup + "/init"
	commandsGroup = machineGroup + "/commands"
)

// Keeper keeps a user's namespaces.
type Keeper struct {
	Home string // of the clusters
	Self string // this program
	// Scope has the user's systemd make a scope of that name for this process, and returns its cgroup.
	Scope func(ctx context.Context, runtime, name, description string) (group string, err error)
	Log   *slog.Logger
}

// Run makes the namespaces, calls ready when they can be entered, and keeps them until nobody has a lease any more, or
// ctx ends. Then it takes everything away. Whoever starts it holds a lease.
func (k Keeper) Run(ctx context.Context, ready func() error) (err error) {
	u, err := CurrentUser()
	if err != nil {
		return err
	}
	p := placeOf(u, k.Home)
	group, err := k.Scope(ctx, u.Runtime, p.unit(), "Bonsai clusters of "+u.Name)
	if err != nil {
		return err
	}
	first, err := k.begin(p, u, group)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, first.end()) }()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	network := supervise.New(life, k.Log)
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		network.Keep(life, supervise.Process{Name: first.network, Argv: first.forward,
			Log: p.at(first.network + ".log")})
	}()
	defer func() { end(); <-forwarded }()
	if err := first.await(ctx); err != nil {
		for _, s := range network.Statuses() {
			if s.LastWords != "" || s.LastExit != "" {
				err = fmt.Errorf("%w: %s", err, s.Epitaph())
			}
		}
		return err
	}
	opened, shut := context.WithCancel(life)
	defer shut()
	served := make(chan error, 1)
	go func() { served <- door.Serve(opened, p.door()) }()
	defer func() { err = errors.Join(err, p.remove()) }()
	if err := p.write(state{first.cmd.Process.Pid, u, first.network}); err != nil {
		return err
	}
	if err := ready(); err != nil {
		return err
	}
	unused := make(chan error, 1)
	go func() { unused <- p.awaitUnused() }()
	select {
	case err := <-unused:
		shut()
		return errors.Join(err, <-served)
	case err := <-served:
		return errors.Join(errors.New("the door of the namespaces has closed"), err)
	case err := <-first.ended:
		return errors.Join(errors.New("the first process of the namespaces has ended"), err)
	case <-ctx.Done():
	}
	shut() // clusters end when they see that
	select {
	case err := <-unused:
		return errors.Join(err, <-served)
	case <-time.After(endPatience):
		return errors.Join(errors.New("clusters did not end in time"), <-served)
	}
}

// awaitUnused returns when nobody has a lease. The lock is held until this process ends: whoever comes meanwhile waits,
// and then finds no keeper.
func (p place) awaitUnused() error {
	f, err := os.OpenFile(p.lease(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return flock(f, unix.LOCK_EX)
}

// remove removes the files of a keeper that ends. What is left of an unexpected end, as logs, goes too.
func (p place) remove() error { return os.RemoveAll(string(p)) }

// first is the first process of the namespaces.
type first struct {
	cmd     *exec.Cmd
	network string   // the program that forwards packets
	forward []string // and how to start it
	stdin   io.Closer
	stdout  io.Reader
	ended   chan error
}

// begin makes the namespaces with their IDs and cgroups. group is that of the scope.
func (k Keeper) begin(p place, u User, group string) (*first, error) {
	for _, name := range []string{keeperGroup, initGroup, commandsGroup} {
		if err := os.MkdirAll(filepath.Join(group, name), 0o755); err != nil {
			return nil, fmt.Errorf("make the cgroup: %w", err)
		}
	}
	program, err := networkProgram()
	if err != nil {
		return nil, err
	}
	// The address does not depend on the process, which is not there yet.
	_, dns := networkArguments(program, 0)
	f, err := k.start(p, group, dns)
	if err != nil {
		return nil, err
	}
	pid := f.cmd.Process.Pid
	f.network = program
	f.forward, _ = networkArguments(program, pid)
	if err := errors.Join(move(group, initGroup, pid), cgroup.Delegate(group), mapIDs(pid, u)); err != nil {
		return nil, errors.Join(err, f.end())
	}
	return f, nil
}

// start starts the first process. The root of its cgroup namespace is the group of the process that makes it, so this
// process is in that group meanwhile, and then in a leaf beside it.
func (k Keeper) start(p place, group string, dns netip.Addr) (*first, error) {
	f := &first{ended: make(chan error, 1)}
	f.cmd = exec.Command(k.Self, "rootless-begin", string(p), dns.String())
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true,
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP}
	f.cmd.Stderr = os.Stderr
	stdin, err := f.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	f.stdin = stdin
	if f.stdout, err = f.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := move(group, machineGroup, 0); err != nil {
		return nil, err
	}
	if err := f.cmd.Start(); err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	if err := move(group, keeperGroup, 0); err != nil {
		return nil, errors.Join(err, f.cmd.Process.Kill(), f.cmd.Wait())
	}
	return f, nil
}

// move moves a process into a group below another; 0 is this process.
func move(group, name string, pid int) error {
	file := filepath.Join(group, name, "cgroup.procs")
	if err := os.WriteFile(file, []byte(strconv.Itoa(pid)), 0); err != nil {
		return fmt.Errorf("move a process into a cgroup: %w", err)
	}
	return nil
}

// await lets the process go on, and returns when it says that the namespaces have their network.
func (f *first) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, beginPatience,
		fmt.Errorf("the namespaces have no network after %s", beginPatience))
	defer cancel()
	if _, err := f.stdin.(io.Writer).Write([]byte{'\n'}); err != nil {
		return fmt.Errorf("let the first process of the namespaces go on: %w", err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(f.stdout, make([]byte, 1))
		answered <- err
		f.ended <- f.cmd.Wait()
	}()
	select {
	case err := <-answered:
		if err != nil {
			return fmt.Errorf("make the namespaces: %w", err)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end ends the process and with it, as nobody else is there, the namespaces.
func (f *first) end() error {
	return errors.Join(f.stdin.Close(), ignoreDone(f.cmd.Process.Kill()))
}

// ignoreDone returns err unless it says that a process has ended already.
func ignoreDone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
