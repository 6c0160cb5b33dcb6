package rootless

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/door"
)

// place is the directory of a keeper's files, one for each home of clusters. It is in memory, and goes with the keeper.
type place string

// placeOf returns the place for a home of clusters. Its name is also that of the keeper's scope.
func placeOf(u User, home string) place {
	return place(filepath.Join(u.Runtime, fmt.Sprintf("bonsai-rootless-%08x", crc32.ChecksumIEEE([]byte(home)))))
}

// inside is the place as the namespaces show it.
const inside place = door.Dir

func (p place) at(name string) string { return filepath.Join(string(p), name) }

func (p place) door() string     { return p.at(door.Name) }
func (p place) lease() string    { return p.at("lease") }
func (p place) starting() string { return p.at("starting") }
func (p place) log() string      { return p.at("log") }
func (p place) state() string    { return p.at("state.json") }

// unit returns the name of the keeper's scope.
func (p place) unit() string { return filepath.Base(string(p)) + ".scope" }

// state is what the keeper writes down for those who enter.
type state struct {
	PID     int    // of the first process of the namespaces
	User    User   // whose they are
	Network string // the program that forwards their packets
}

// read returns the state of the keeper, or an error that wraps fs.ErrNotExist.
func (p place) read() (s state, err error) {
	data, err := os.ReadFile(p.state())
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		err = fmt.Errorf("read the state of the namespaces: %w", err)
	}
	return s, err
}

// write is the opposite of read.
func (p place) write(s state) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return host.WriteFile(p.state(), data)
}

// Owner returns the user in whose namespaces this process runs.
func Owner() (User, error) {
	s, err := inside.read()
	return s.User, err
}

// hold takes a lease and waits while the keeper is ending, which holds the lock alone. The lease ends with the file. A
// keeper that ends removes its place: then the lease is of a file that nobody else sees, and hold tries again.
func (p place) hold() (*os.File, error) {
	for {
		if err := os.MkdirAll(string(p), 0o700); err != nil {
			return nil, fmt.Errorf("make a place for the namespaces: %w", err)
		}
		if err := p.check(); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(p.lease(), os.O_CREATE|os.O_RDWR, 0o600)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := flock(f, unix.LOCK_SH); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if p.isCurrent(f) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// remove takes the place away. The caller has the lock alone. The place leaves its name as a whole: a command that
// comes meanwhile makes a new one, in which nothing is removed.
func (p place) remove() error {
	gone, err := os.MkdirTemp(filepath.Dir(string(p)), filepath.Base(string(p))+".gone-*")
	if err != nil {
		return fmt.Errorf("remove the place of the namespaces: %w", err)
	}
	err = os.Rename(string(p), filepath.Join(gone, "place"))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(gone))
}

// check returns an error if others than this process's user may change the place: they could lead commands elsewhere.
func (p place) check() error {
	info, err := os.Stat(string(p))
	if errors.Is(err, os.ErrNotExist) {
		return nil // it goes at this moment
	}
	if err != nil {
		return err
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not yours alone: set XDG_RUNTIME_DIR to a directory that is", p)
	}
	return nil
}

// isCurrent reports whether f is still the file of leases.
func (p place) isCurrent(f *os.File) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	current, err := os.Stat(p.lease())
	return err == nil && os.SameFile(own, current)
}

// flock locks a file, and waits as long as it takes.
func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		return nil
	}
}
