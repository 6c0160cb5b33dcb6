// Package pidfdtest imitates the moment at which a process's number becomes another's.
package pidfdtest

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"
)

// ListOnce makes a file like cgroup.procs at path. It names pid to its first reader and nothing to later ones, as if
// the process had ended in between.
func ListOnce(t *testing.T, path string, pid int) {
	t.Helper()
	// A FIFO: each reader gets what its writer writes.
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- serve(t, path, fmt.Sprintf("%d\n", pid)) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// serve answers the readers of the FIFO until the test ends, which must be before its directory goes.
func serve(t *testing.T, path, text string) error {
	next := time.NewTicker(time.Millisecond)
	defer next.Stop()
	for {
		// Without O_NONBLOCK this would wait for ever for a reader that does not come.
		fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		switch {
		case err == nil:
			_, err = syscall.Write(fd, []byte(text))
			text = ""
			if err := errors.Join(err, syscall.Close(fd)); err != nil {
				return err
			}
		case !errors.Is(err, syscall.ENXIO): // nobody reads
			return err
		}
		select {
		case <-next.C:
		case <-t.Context().Done():
			return nil
		}
	}
}
