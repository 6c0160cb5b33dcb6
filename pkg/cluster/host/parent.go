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
	poll := []unix.PollFd{{Fd: int32(line.Fd())}}
	if _, err := unix.Poll(poll, 0); err != nil {
		return fmt.Errorf("look for the parent: %w", err)
	}
	if poll[0].Revents&unix.POLLHUP != 0 {
		return errors.New("the supervisor has ended")
	}
	return nil
}
