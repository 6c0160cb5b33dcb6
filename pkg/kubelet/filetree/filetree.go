// Package filetree goes through directories that pods fill, from one directory to the next and never by a path: who
// makes directories a hundred thousand levels deep, which every pod may, would have paths fill the memory and the
// kernel go through all of them for each file, and a descriptor for each level would take all that the kubelet may
// have.
package filetree

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

const (
	directory = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	// kept is how many directories on the way down are held open, in addition to the present one.
	kept = 64
	// batch is how many names are read at once.
	batch = 1024
)

// Visitor receives what is in a tree. Directories come as descriptors, which it must not keep.
type Visitor interface {
	// Entry receives each name in dir, before any directory in it is entered, and reports whether to enter this one.
	Entry(dir int, name string) bool
	// Leave receives each directory that Entry has chosen, after everything in it. err is why it could not be entered,
	// for example because it is a mount point. Directories that were moved away meanwhile are not reported.
	Leave(dir int, name string, err error)
}

// Open opens the root of a tree. One that is a link is an error (ENOTDIR).
func Open(path string) (*os.File, error) { return os.OpenFile(path, directory, 0) }

// Walk tells v of all that is below root, which it closes. It follows no links, goes into no mount point, and never
// above root, whoever moves its directories about meanwhile. It ends with ctx, with its error.
func Walk(ctx context.Context, root *os.File, v Visitor) error {
	w := &walk{visitor: v}
	defer w.leave(0)
	for w.enter(root, ""); len(w.way) > 0; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		here := w.way[len(w.way)-1]
		if len(here.rest) == 0 {
			w.up()
			continue
		}
		name := here.rest[len(here.rest)-1]
		here.rest = here.rest[:len(here.rest)-1]
		fd, err := unix.Openat2(here.fd(), name,
			&unix.OpenHow{Flags: directory, Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS})
		if err != nil {
			v.Leave(here.fd(), name, err)
			continue
		}
		w.enter(os.NewFile(uintptr(fd), "directory"), name)
	}
	return nil
}

type walk struct {
	visitor Visitor
	way     []*visit
}

// visit is a directory on the way from the root to where the walk is. From the depth kept on it is closed while the
// walk is further down.
type visit struct {
	dir      *os.File
	name     string
	dev, ino uint64
	rest     []string // what is still to be gone into
}

func (v *visit) fd() int { return int(v.dir.Fd()) }

// enter goes into a directory and reports its entries. What cannot be read is left out: it went away, or its disk is
// broken.
func (w *walk) enter(dir *os.File, name string) {
	v := &visit{dir: dir, name: name}
	v.dev, v.ino, _ = identity(v.fd())
	for more := true; more; {
		names, err := dir.Readdirnames(batch)
		more = err == nil
		for _, n := range names {
			if w.visitor.Entry(v.fd(), n) {
				v.rest = append(v.rest, n)
			}
		}
	}
	if n := len(w.way); n > kept {
		w.way[n-1].dir.Close() // it was only read
	}
	w.way = append(w.way, v)
}

// up goes back to the directory above. If the walk's was moved elsewhere meanwhile, it goes back to the last one that
// is open.
func (w *walk) up() {
	n := len(w.way) - 1
	if n > kept {
		fd, err := unix.Openat(w.way[n].fd(), "..", directory, 0)
		if err != nil {
			w.leave(kept)
			return
		}
		above := w.way[n-1]
		above.dir = os.NewFile(uintptr(fd), "directory")
		if dev, ino, err := identity(fd); err != nil || dev != above.dev || ino != above.ino {
			w.leave(kept)
			return
		}
	}
	name := w.way[n].name
	w.leave(n)
	if n > 0 {
		w.visitor.Leave(w.way[n-1].fd(), name, nil)
	}
}

// leave ends the visits from the nth one on. Those that are closed already stay so.
func (w *walk) leave(n int) {
	for _, v := range w.way[n:] {
		v.dir.Close()
	}
	w.way = w.way[:n]
}

func identity(fd int) (dev, ino uint64, err error) {
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	return uint64(st.Dev), st.Ino, err
}
