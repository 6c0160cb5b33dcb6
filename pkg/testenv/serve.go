package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bonsai/pkg/privatesocket"
)

// controlSocket returns the socket of an environment that runs in the background. A byte asks it to stop; it closes the
// connection when everything is gone.
func controlSocket(dir string) string { return filepath.Join(dir, "control") }

// stopPatience bounds the wait for an environment's end: one that starts is stopped when it is ready, which takes up to
// a minute.
const stopPatience = 90 * time.Second

// killPatience bounds the wait for a process that was asked to end while it started.
const killPatience = 10 * time.Second

// look is the time between two looks for an environment's control socket.
const look = 5 * time.Millisecond

// Serve runs an environment until ctx ends or StopServed is called. It is an error if one runs in its directory, or
// starts there; what one that was killed has left is removed.
func Serve(ctx context.Context, c Config) error {
	if c.Dir == "" {
		return errors.New("serve an environment: Dir is empty, and nobody would find it")
	}
	held, err := lock(c.Dir)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := os.RemoveAll(c.Dir); err != nil {
		return err
	}
	e, err := Start(ctx, c)
	if err != nil {
		return err
	}
	control, err := privatesocket.Listen(ctx, controlSocket(e.dir))
	if err != nil {
		return errors.Join(err, e.Stop())
	}
	context.AfterFunc(ctx, func() { control.Close() })
	for {
		asked, err := control.Accept()
		if ctx.Err() != nil {
			return e.Stop()
		}
		if err != nil {
			return errors.Join(err, e.Stop())
		}
		defer asked.Close()
		if n, _ := asked.Read(make([]byte, 1)); n > 0 { // else somebody wanted to know whether anybody listens
			return e.Stop()
		}
	}
}

// Launch runs command, which is to Serve an environment in dir, in the background, and waits until it is ready. It is
// an error if one runs there, or starts. If ctx ends before it is ready, the process is ended.
func Launch(ctx context.Context, dir string, command *exec.Cmd) error {
	if conn, err := net.Dial("unix", controlSocket(dir)); err == nil {
		conn.Close()
		return errRuns(dir)
	}
	said, err := os.CreateTemp(filepath.Dir(dir), ".said-")
	if err != nil {
		return err
	}
	defer said.Close()
	if err := os.Remove(said.Name()); err != nil {
		return err
	}
	command.Stdout, command.Stderr, command.SysProcAttr = said, said, &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		// The socket's file is there a moment before anybody listens. The socket may be that of another launch, which
		// was faster: then the command ends.
		if isServedBy(dir, command.Process.Pid) {
			return nil
		}
		select {
		case err := <-ended:
			return whyEnded(dir, said, err)
		case <-ctx.Done():
			end(command.Process, ended)
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// isServedBy reports whether the process with that pid listens at the control socket of the environment in dir.
func isServedBy(dir string, pid int) bool {
	conn, err := net.Dial("unix", controlSocket(dir))
	if err != nil {
		return false
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return false
	}
	var peer *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return errors.Join(err, failed) == nil && int(peer.Pid) == pid
}

// whyEnded is the error of a process that ended before its environment was ready, with what it said.
func whyEnded(dir string, said io.ReaderAt, exit error) error {
	why, _ := io.ReadAll(io.NewSectionReader(said, 0, 4096))
	switch {
	case exit == nil:
		return fmt.Errorf("the environment in %s was stopped while it started", dir)
	case strings.Contains(string(why), errRuns(dir).Error()):
		return errRuns(dir)
	}
	return fmt.Errorf("%w: %s", exit, why)
}

// end ends a process, and returns when it has ended.
func end(p *os.Process, ended <-chan error) {
	p.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	select {
	case <-ended:
	case <-time.After(killPatience):
		p.Kill() //nolint:errcheck // it may have ended; its programs end with it
		<-ended
	}
}

// StopServed ends the environment in dir that another process serves, and waits until it is gone; found is false if
// there is none. One that starts is ended as soon as it is ready.
func StopServed(dir string) (found bool, err error) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for deadline := time.Now().Add(stopPatience); ; <-tick.C {
		held, err := lock(dir)
		if err == nil { // nobody serves: what there is was left by one that was killed
			_, missing := os.Stat(dir)
			return found || missing == nil, errors.Join(os.RemoveAll(dir), held.Close())
		}
		if errors.Is(err, os.ErrNotExist) { // nor is there a place for one
			return false, nil
		}
		if !errors.Is(err, errRuns(dir)) {
			return found, err
		}
		found = true
		if time.Now().After(deadline) {
			return true, fmt.Errorf("%w: it has not ended after %s", err, stopPatience)
		}
		if err := askToStop(dir, deadline); err != nil {
			return true, err
		}
	}
}

// askToStop asks the process that serves an environment in dir to stop, and returns when everything but its lock is
// gone. It returns at once if nobody listens: the environment starts, or ends.
func askToStop(dir string, deadline time.Time) error {
	conn, err := net.Dial("unix", controlSocket(dir))
	if err != nil {
		return nil //nolint:nilerr // nobody listens
	}
	defer conn.Close()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := conn.Write([]byte{'\n'}); err != nil {
		return nil //nolint:nilerr // it ended meanwhile
	}
	_, err = io.Copy(io.Discard, conn)
	if errors.Is(err, syscall.ECONNRESET) { // another stop was faster
		return nil
	}
	return err
}
