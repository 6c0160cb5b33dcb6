package host

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// DieWithParent makes the kernel kill this process when its parent ends, even a parent outside its PID namespace.
//
// The setting belongs to the calling thread. A parent that asks for it at fork sets it on the first thread, and it is
// lost when another thread calls exec. So the caller asks again, on the locked thread that will call exec. line is an
// open pipe from the parent: if its other end is closed, the parent ended before the setting was made.
func DieWithParent(line *os.File) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("tie the process to its parent: %w", err)
	}
	ended, err := hungUp(line)
	if err != nil {
		return fmt.Errorf("look for the parent: %w", err)
	}
	if ended {
		return errors.New("the supervisor has ended")
	}
	return nil
}

// hungUp reports whether the other end of a pipe is closed. A signal, such as those of Go's own scheduler, interrupts
// poll(2) even where it does not wait, and no flag of the signal's handler starts it again (signal(7)).
func hungUp(line *os.File) (bool, error) {
	poll := []unix.PollFd{{Fd: int32(line.Fd())}}
	_, err := unix.Poll(poll, 0)
	for errors.Is(err, unix.EINTR) {
		_, err = unix.Poll(poll, 0)
	}
	return poll[0].Revents&unix.POLLHUP != 0, err
}
