package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

const (
	// LogName is the supervisor's own among the names of processes that have a log.
	LogName = "bonsai"
	// socket is the name of its control socket.
	socket = "supervisor"
)

// IsRunning reports whether the supervisor of a cluster answers.
func IsRunning(ctx context.Context, l plan.Layout) bool {
	_, err := supervise.Ask(ctx, l.Socket(socket))
	return err == nil
}

// Launch starts this program again in the background as the supervisor and waits until it answers. Until then it lives
// no longer than this process: it ends in order when its standard input ends (untilReleased). It holds the data
// directory's lock from the beginning, so that a command that stops the cluster at any moment knows that it is there.
func Launch(ctx context.Context, c plan.Config, self string) (err error) {
	log := c.Layout().Log(LogName)
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	before, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	lock, err := datadir.Lock(c.Layout().Lock())
	if err != nil {
		return err
	}
	defer lock.Close() // the supervisor has a copy of the file, and so keeps the lock
	// Writing a byte into release lets the supervisor live on its own. Until then the end of this process closes the
	// pipe, and the supervisor ends too.
	line, release, err := os.Pipe()
	if err != nil {
		return err
	}
	defer line.Close()
	defer release.Close()
	cmd := exec.Command(self, "supervise", "--data-dir", c.DataDir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir = line, f, f, "/"
	cmd.Env = c.Environ(os.Environ())
	cmd.ExtraFiles = []*os.File{lock}                    // lockFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal's signals are not for it
	if err := cmd.Start(); err != nil {
		return err
	}
	var exit error
	ended := make(chan struct{})
	go func() {
		exit = cmd.Wait()
		close(ended)
	}()
	err = host.Poll(ctx, 5*time.Millisecond, func() (bool, error) {
		select {
		case <-ended:
			return false, errors.New(
				supervise.ProcessStatus{Name: "the supervisor", LastExit: fmt.Sprint(exit),
					LastWords: supervise.WordsSince(log, before)}.Epitaph())
		default:
			return IsRunning(ctx, c.Layout()), nil
		}
	})
	if err == nil {
		_, err = release.Write([]byte{1})
		return err
	}
	// The supervisor ends in order: it may already have begun to make processes and the network.
	release.Close()
	select {
	case <-ended:
	case <-time.After(supervise.StopPatience):
		cmd.Process.Kill()
	}
	return err
}
