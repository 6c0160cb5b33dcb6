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
	"syscall"
	"time"

	"bonsai/pkg/privatesocket"
)

// controlSocket returns the socket of an environment that runs in the background. A byte asks it to stop; it closes the
// connection when everything is gone.
func controlSocket(dir string) string { return filepath.Join(dir, "control") }

// Serve runs an environment until ctx ends or StopServed is called.
func Serve(ctx context.Context, c Config) error {
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
// an error if one runs there; what one that was killed has left is removed.
func Launch(ctx context.Context, dir string, command *exec.Cmd) error {
	if conn, err := net.Dial("unix", controlSocket(dir)); err == nil {
		conn.Close()
		return fmt.Errorf("an environment runs in %s", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
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
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		// The socket's file is there a moment before anybody listens, and a second Launch in that moment would take the
		// first one's away.
		if conn, err := net.Dial("unix", controlSocket(dir)); err == nil {
			return conn.Close()
		}
		select {
		case err := <-ended:
			why, _ := io.ReadAll(io.NewSectionReader(said, 0, 4096))
			return fmt.Errorf("%w: %s", err, why)
		case <-ctx.Done():
			command.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// StopServed ends the environment in dir that another process serves, and waits until it is gone; found is false if
// there is none.
func StopServed(dir string) (found bool, err error) {
	conn, err := net.Dial("unix", controlSocket(dir))
	if err != nil { // nobody listens: what there is was left by one that was killed
		_, err := os.Stat(dir)
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return true, errors.Join(err, os.RemoveAll(dir))
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{'\n'}); err != nil {
		return true, err
	}
	_, err = io.Copy(io.Discard, conn)
	return true, err
}
