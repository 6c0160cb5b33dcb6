package cluster

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

// Restart back-off: doubled at every end that comes within stable of the start. It begins low, so that a component that was killed is
// back before most clients notice, and stays low enough that one whose trouble is over comes up while the user still looks.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 10 * time.Second
	stable     = 10 * time.Second
	// stopGrace is how long a process may take to stop on SIGTERM before SIGKILL, which costs it nothing but the requests in flight:
	// every component continues from what the API says, and etcd from its log.
	stopGrace = 5 * time.Second
	// outputDelay is how long the output of a process that ended is waited for, should a child of it hold the pipe open.
	outputDelay = time.Second
)

// process is one program that is kept running.
type process struct {
	name string
	argv []string
	env  []string // added to the parent's
	log  string   // file of the log that stdout and stderr go to
	// attr is copied for each start; Setsid and Pdeathsig are always set.
	attr syscall.SysProcAttr
	// before, if set, runs before each start.
	before func(context.Context)
	// started, if set, runs after each start with the new process's pid. The process waits meanwhile for one byte on its
	// standard input, which then stays open for as long as both live (used to give a node its network).
	started func(pid int) error
}

// ProcessStatus describes a supervised process.
type ProcessStatus struct {
	Name     string    `json:"name"`
	PID      int       `json:"pid,omitempty"` // in the supervisor's PID namespace; 0 while it is down
	Started  time.Time `json:"started"`
	Restarts int       `json:"restarts"`
	LastExit string    `json:"lastExit,omitempty"`
	// LastWords is the end of what it wrote before its last end.
	LastWords string `json:"lastWords,omitempty"`
}

// supervisor keeps processes running until it is told to stop them.
type supervisor struct {
	log     *slog.Logger
	forks   chan func()
	environ []string // the children's, beside their own variables

	mu       sync.Mutex   // guards all below: each process has a goroutine, and the control socket asks for the statuses
	children map[int]bool // started and not yet waited for
	status   map[string]*ProcessStatus
	order    []string
}

// newSupervisor returns a supervisor whose children are killed by the kernel when this process ends. The kernel ties that to
// the thread that forked: all forks happen on one thread that lives as long as ctx.
func newSupervisor(ctx context.Context, log *slog.Logger) *supervisor {
	s := &supervisor{log: log, forks: make(chan func()), environ: os.Environ(), status: map[string]*ProcessStatus{}, children: map[int]bool{}}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread must not be given to another goroutine that might end it
		for {
			select {
			case fork := <-s.forks:
				fork()
			case <-ctx.Done():
				return
			}
		}
	}()
	return s
}

// statuses returns all processes in the order in which they were first started.
func (s *supervisor) statuses() []ProcessStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]ProcessStatus, 0, len(s.order))
	for _, name := range s.order {
		out = append(out, *s.status[name])
	}
	return out
}

// forget drops a process that is not kept any more.
func (s *supervisor) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.status, name)
	s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == name })
}

// owns tells whether pid is a child that somebody here waits for.
func (s *supervisor) owns(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.children[pid]
}

func (s *supervisor) record(name string, change func(*ProcessStatus)) {
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

// keep runs p again and again, with back-off, until ctx ends; then it stops it with SIGTERM and, if need be, SIGKILL.
func (s *supervisor) keep(ctx context.Context, p process) {
	backoff := minBackoff
	s.record(p.name, func(*ProcessStatus) {})
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
		s.record(p.name, func(st *ProcessStatus) { st.PID, st.LastExit, st.Restarts = 0, exit, st.Restarts+1 })
		if time.Since(began) > stable {
			backoff = minBackoff
		}
		s.log.Warn("process ended, starting it again", "process", p.name, "exit", exit, "backoff", backoff)
		select {
		case <-time.After(backoff):
		case <-ctx.Done():
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// once starts p and waits for its end.
func (s *supervisor) once(ctx context.Context, p process) error {
	out, err := openLog(p.log)
	if err != nil {
		return err
	}
	defer func() {
		s.record(p.name, func(st *ProcessStatus) { st.LastWords = out.words() })
		out.Close()
	}()
	if p.before != nil {
		p.before(ctx)
	}
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Env = append(slices.Clip(s.environ), p.env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = outputDelay
	attr := p.attr
	attr.Setsid, attr.Pdeathsig = true, syscall.SIGKILL
	cmd.SysProcAttr = &attr
	release := func() error { return nil }
	if p.started != nil {
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		release = func() error { _, err := stdin.Write([]byte{'\n'}); return err }
	}
	if err := s.start(ctx, cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.argv[0], err)
	}
	s.record(p.name, func(st *ProcessStatus) { st.PID, st.Started = cmd.Process.Pid, time.Now() })
	ended := make(chan error, 1)
	go func() { ended <- s.wait(cmd) }()
	if p.started != nil {
		if err := errors.Join(p.started(cmd.Process.Pid), release()); err != nil {
			cmd.Process.Kill()
			<-ended
			return fmt.Errorf("prepare %s: %w", p.name, err)
		}
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		return err
	case <-time.After(stopGrace):
		cmd.Process.Kill()
		return <-ended
	}
}

// start forks on the supervisor's thread. The caller must call wait.
func (s *supervisor) start(ctx context.Context, cmd *exec.Cmd) error {
	done := make(chan error, 1)
	fork := func() {
		s.mu.Lock() // so that owns knows a child before anyone can see it end
		defer s.mu.Unlock()
		err := cmd.Start()
		if err == nil {
			s.children[cmd.Process.Pid] = true
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
func (s *supervisor) wait(cmd *exec.Cmd) error {
	err := cmd.Wait() // first: the end of a child that is not owned any more would be taken by reap, and its exit status lost
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.children, cmd.Process.Pid)
	return err
}
