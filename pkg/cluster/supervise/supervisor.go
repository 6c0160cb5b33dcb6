package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// The back-off doubles with every end that comes within stable of the start. It begins low, so that a component that
// was killed is back before most clients notice. It stays low enough that a component whose trouble is over starts
// while the user is still watching.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 10 * time.Second
	stable     = 10 * time.Second
	// StopGrace is how long a process may take to stop on SIGTERM before it gets SIGKILL. That costs no more than the
	// requests in flight: every component continues from what the API says, and etcd from its log.
	StopGrace = 5 * time.Second
	// StopPatience bounds the orderly end of a whole cluster: its nodes, its control plane and its etcd, with StopGrace
	// for each.
	StopPatience = 3*StopGrace + 15*time.Second
	// outputDelay bounds the wait for the output of a process that has ended, if a child of it still holds the pipe
	// open.
	outputDelay = time.Second
)

// Process is one program that is kept running.
type Process struct {
	Name string
	Argv []string
	Env  []string // added to the parent's
	Log  string   // file of the log that stdout and stderr go to
	// Attr is copied for each start. Setsid and Pdeathsig are always set.
	Attr syscall.SysProcAttr
	// Before, if set, runs before each start.
	Before func(context.Context)
	// Started, if set, runs after each start with the new process's pid. Meanwhile the process waits for one byte on
	// its standard input, which then stays open for as long as both live. A node gets its network in this time.
	Started func(pid int) error
}

// ProcessStatus describes a supervised process.
type ProcessStatus struct {
	Name     string    `json:"name"`
	PID      int       `json:"pid,omitempty"` // in the supervisor's PID namespace; 0 while it is down
	Started  time.Time `json:"started"`
	Restarts int       `json:"restarts"`
	LastExit string    `json:"lastExit,omitempty"`
	// LastWords is the end of what the process wrote before its last end.
	LastWords string `json:"lastWords,omitempty"`
}

// Supervisor keeps processes running until their contexts end. Several goroutines may call its methods. Environ is set
// before the first Keep and does not change afterwards.
type Supervisor struct {
	log     *slog.Logger
	forks   chan func() // functions for the one thread that forks (New)
	Environ []string    // the children's, beside their own variables

	running sync.WaitGroup // the children; only the thread that forks adds to it

	// guards all below: each process has a goroutine, and the control socket asks for the statuses
	mu       sync.Mutex
	children map[int]bool // started and not yet waited for
	status   map[string]*ProcessStatus
	order    []string
}

// New returns a supervisor whose children the kernel kills when this process ends. The kernel ties a child to the
// thread that forked it, so all forks happen on one thread. It forks until ctx ends, and lives until no child is left:
// otherwise the kernel would kill the children that Keep is about to stop.
func New(ctx context.Context, log *slog.Logger) *Supervisor {
	s := &Supervisor{log: log, forks: make(chan func()), Environ: os.Environ(), status: map[string]*ProcessStatus{},
		children: map[int]bool{}}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread must not be given to another goroutine that might end it
		for {
			select {
			case fork := <-s.forks:
				fork()
			case <-ctx.Done():
				s.running.Wait()
				return
			}
		}
	}()
	return s
}

// Statuses returns all processes in the order in which they were first started.
func (s *Supervisor) Statuses() []ProcessStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]ProcessStatus, 0, len(s.order))
	for _, name := range s.order {
		out = append(out, *s.status[name])
	}
	return out
}

// Forget drops the status of a process that is no longer kept. Keep must have returned, or it would add the status
// again.
func (s *Supervisor) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.status, name)
	s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == name })
}

// Owns reports whether pid is a child that this supervisor waits for.
func (s *Supervisor) Owns(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.children[pid]
}

// record changes the status of a process, which it adds if need be.
func (s *Supervisor) record(name string, change func(*ProcessStatus)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status[name]
	if status == nil {
		status = &ProcessStatus{Name: name}
		s.status[name] = status
		s.order = append(s.order, name)
	}
	change(status)
}

// Keep runs p again and again, with back-off, until ctx ends. Then it stops p with SIGTERM and, after StopGrace, with
// SIGKILL. It returns when p has ended.
//
// Its status remains after the end, so that the last words can still be read (Forget).
//
// The caller runs Keep on a goroutine for each process. A process that cannot start counts as one that ended: it gets
// the same back-off, and its error is the last exit.
func (s *Supervisor) Keep(ctx context.Context, p Process) {
	backoff := minBackoff
	s.record(p.Name, func(*ProcessStatus) {})
	for ctx.Err() == nil {
		began := time.Now()
		err := s.once(ctx, p)
		if ctx.Err() != nil {
			return
		}
		exit := "exit status 0"
		if err != nil {
			exit = err.Error()
		}
		s.record(p.Name, func(st *ProcessStatus) { st.PID, st.LastExit, st.Restarts = 0, exit, st.Restarts+1 })
		if time.Since(began) > stable {
			backoff = minBackoff
		}
		s.log.Warn("process ended, starting it again", "process", p.Name, "exit", exit, "backoff", backoff)
		select {
		case <-time.After(backoff):
		case <-ctx.Done():
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// once starts p and waits for its end.
//
// p.Started runs while the process waits for a byte on its standard input. So the network of a node is complete before
// anything in the node runs, and an error ends the process before it has done anything.
func (s *Supervisor) once(ctx context.Context, p Process) error {
	out, err := OpenLog(p.Log)
	if err != nil {
		return err
	}
	defer func() {
		s.record(p.Name, func(st *ProcessStatus) { st.LastWords = out.words() })
		out.Close()
	}()
	// Before has no bound but ctx. It runs after the end of the process before, and so never beside it.
	if p.Before != nil {
		p.Before(ctx)
	}
	cmd := exec.Command(p.Argv[0], p.Argv[1:]...)
	cmd.Env = append(slices.Clip(s.Environ), p.Env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = outputDelay
	attr := p.Attr
	attr.Setsid, attr.Pdeathsig = true, syscall.SIGKILL
	cmd.SysProcAttr = &attr
	release := func() error { return nil }
	if p.Started != nil {
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		release = func() error { _, err := stdin.Write([]byte{'\n'}); return err }
	}
	if err := s.start(ctx, cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.Argv[0], err)
	}
	s.record(p.Name, func(st *ProcessStatus) { st.PID, st.Started = cmd.Process.Pid, time.Now() })
	// The wait begins before Started: a process that ends meanwhile is reaped, and its line breaks, which release
	// reports.
	ended := make(chan error, 1)
	go func() { ended <- s.wait(cmd) }()
	if p.Started != nil {
		if err := errors.Join(p.Started(cmd.Process.Pid), release()); err != nil {
			cmd.Process.Kill()
			<-ended
			return fmt.Errorf("prepare %s: %w", p.Name, err)
		}
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// Only this process gets the signal, and not its children.
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		return err
	case <-time.After(StopGrace):
		cmd.Process.Kill()
		return <-ended
	}
}

// start forks on the supervisor's thread. The caller must call wait, which takes the child out of children again.
func (s *Supervisor) start(ctx context.Context, cmd *exec.Cmd) error {
	done := make(chan error, 1)
	fork := func() {
		s.mu.Lock() // so that Owns knows a child before anybody can see its end
		defer s.mu.Unlock()
		err := cmd.Start()
		if err == nil {
			s.children[cmd.Process.Pid] = true
			s.running.Add(1)
		}
		done <- err
	}
	select {
	case s.forks <- fork:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait waits for the end of a started command.
func (s *Supervisor) wait(cmd *exec.Cmd) error {
	// Wait comes first: the reaper of orphans would take the end of a child that is no longer owned, and with it the
	// exit status.
	err := cmd.Wait()
	s.running.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.children, cmd.Process.Pid)
	return err
}
