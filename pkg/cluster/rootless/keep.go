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
	"runtime"
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
	made, err := k.make(ctx, p, u, group)
	if err != nil {
		return err // whoever started this process reads the log in the place
	}
	// Last, as whoever comes meanwhile waits for the lock of a lease, and must find nothing afterwards.
	defer func() { err = errors.Join(err, p.remove()) }()
	defer func() { err = errors.Join(err, made.end()) }()
	entrance, err := door.Open(ctx, p.door())
	if err != nil {
		return err
	}
	opened, shut := context.WithCancel(context.WithoutCancel(ctx))
	defer shut()
	served := make(chan error, 1)
	go func() { served <- entrance.Serve(opened) }()
	if err := p.write(state{made.cmd.Process.Pid, u, made.network}); err != nil {
		return err
	}
	if err := ready(); err != nil {
		return err
	}
	leases, err := os.OpenFile(p.lease(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	unused := make(chan error, 1)
	// The lock is held until this process ends.
	go func() { unused <- flock(leases, unix.LOCK_EX) }()
	defer runtime.KeepAlive(leases)
	select {
	case err := <-unused:
		shut()
		return errors.Join(err, <-served)
	case err := <-served:
		return errors.Join(errors.New("the door of the namespaces has closed"), err)
	case err := <-made.ended:
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

// made are namespaces that exist.
type made struct {
	cmd     *exec.Cmd // their first process
	stdin   io.WriteCloser
	stdout  io.Reader
	ended   chan error // when that process has
	network string     // the program that forwards packets
	stop    func()     // ends that program
}

// make makes the namespaces with the first program for their network that works, of those that are there. Debian 12's
// AppArmor does not let its pasta look at the namespaces.
func (k Keeper) make(ctx context.Context, p place, u User, group string) (*made, error) {
	for _, name := range []string{keeperGroup, initGroup, commandsGroup} {
		if err := os.MkdirAll(filepath.Join(group, name), 0o755); err != nil {
			return nil, fmt.Errorf("make the cgroup: %w", err)
		}
	}
	programs := networkPrograms()
	errs := []error{errors.New("the namespaces have no network: neither pasta nor slirp4netns works")}
	for i, program := range programs {
		m, err := k.begin(p, u, group, program)
		if err != nil {
			return nil, err
		}
		if err = m.await(ctx, k.forward(ctx, p, m), i == len(programs)-1); err == nil {
			return m, nil
		}
		errs = append(errs, err, m.end())
	}
	return nil, errors.Join(errs...)
}

// begin makes the namespaces with their IDs and cgroups. group is that of the scope.
func (k Keeper) begin(p place, u User, group, program string) (*made, error) {
	m, err := k.start(p, group, networkDNS(program))
	if err != nil {
		return nil, err
	}
	m.network = program
	pid := m.cmd.Process.Pid
	if err := errors.Join(move(group, initGroup, pid), cgroup.Delegate(group), mapIDs(pid, u)); err != nil {
		return nil, errors.Join(err, m.end())
	}
	return m, nil
}

// forward keeps the program for the network of the namespaces running. It outlives ctx, until stop is called.
func (k Keeper) forward(ctx context.Context, p place, m *made) *supervise.Supervisor {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	s, ended := supervise.New(life, k.Log), make(chan struct{})
	go func() {
		defer close(ended)
		s.Keep(life, supervise.Process{Name: m.network, Argv: networkArguments(m.network, m.cmd.Process.Pid),
			Log: p.at(m.network + ".log")})
	}()
	m.stop = func() { end(); <-ended }
	return s
}

// start starts the first process. The root of its cgroup namespace is the group of the process that makes it, so this
// process is in that group meanwhile, and then in a leaf beside it.
func (k Keeper) start(p place, group string, dns netip.Addr) (*made, error) {
	m := &made{ended: make(chan error, 1), stop: func() {}}
	m.cmd = exec.Command(k.Self, "rootless-begin", string(p), dns.String())
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true,
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP}
	m.cmd.Stderr = os.Stderr
	var err error
	if m.stdin, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if m.stdout, err = m.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := move(group, machineGroup, 0); err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	if err := move(group, keeperGroup, 0); err != nil {
		return nil, errors.Join(err, m.cmd.Process.Kill(), m.cmd.Wait())
	}
	return m, nil
}

// move moves a process into a group below another; 0 is this process.
func move(group, name string, pid int) error {
	file := filepath.Join(group, name, "cgroup.procs")
	if err := os.WriteFile(file, []byte(strconv.Itoa(pid)), 0); err != nil {
		return fmt.Errorf("move a process into a cgroup: %w", err)
	}
	return nil
}

// await lets the first process go on, and returns when it says that the namespaces have their network. Unless the
// program for that is the last one, it gives up when the program ends. Otherwise the machine may still get a network,
// as at boot.
func (m *made) await(ctx context.Context, s *supervise.Supervisor, last bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, beginPatience, fmt.Errorf("no network after %s", beginPatience))
	defer cancel()
	if _, err := m.stdin.Write([]byte{'\n'}); err != nil {
		return fmt.Errorf("let the first process of the namespaces go on: %w", err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(m.stdout, make([]byte, 1))
		answered <- err
		m.ended <- m.cmd.Wait()
	}()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-answered:
			if err != nil {
				return fmt.Errorf("make the namespaces: %w", err)
			}
			return nil
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", context.Cause(ctx), lastWords(s))
		case <-look.C:
			if words := lastWords(s); !last && words != "" {
				return errors.New(words)
			}
		}
	}
}

// lastWords returns how the process of a supervisor ended last, or "" if it has not ended yet.
func lastWords(s *supervise.Supervisor) string {
	for _, status := range s.Statuses() {
		if status.LastExit != "" {
			return status.Epitaph()
		}
	}
	return ""
}

// end ends the network and the first process and with it, as nobody else is there, the namespaces.
func (m *made) end() error {
	m.stop()
	return errors.Join(m.stdin.Close(), ignoreDone(m.cmd.Process.Kill()))
}

// ignoreDone returns err unless it says that a process has ended already.
func ignoreDone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
