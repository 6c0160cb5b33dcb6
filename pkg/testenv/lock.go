package testenv

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the lock of the environment in dir, or returns errRuns. A process that serves one holds the lock from
// before the first file until the last process and file are gone. Whoever removes what a killed one left holds it
// meanwhile. The kernel releases it when its holder ends, whose programs do not inherit it (O_CLOEXEC).
//
// The file is beside dir and is never removed: a second file at the same path would be another lock.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errRuns(dir)
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// errRuns is the error of a second environment in the directory that it names.
type errRuns string

func (dir errRuns) Error() string {
	return fmt.Sprintf("an environment runs, or is starting, in %s", string(dir))
}
