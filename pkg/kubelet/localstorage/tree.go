package localstorage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"bonsai/pkg/kubelet/runtime"
)

// Tree is what the files below dir take on the disk: blocks and inodes, each file once however many names it has, without following links.
// Files that go meanwhile count nothing; a directory that is not there is empty.
func Tree(ctx context.Context, dir string) (runtime.DiskUse, error) {
	root, err := unix.Open(dir, directory, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return runtime.DiskUse{}, nil
	}
	if err != nil {
		return runtime.DiskUse{}, fmt.Errorf("measure the directory %s: %w", dir, err)
	}
	w := &walk{seen: map[inode]bool{}}
	defer w.leave(0)
	for w.enter(root); len(w.way) > 0; {
		if ctx.Err() != nil {
			return w.total, ctx.Err()
		}
		here := w.way[len(w.way)-1]
		if len(here.rest) == 0 {
			w.up()
			continue
		}
		name := here.rest[len(here.rest)-1]
		here.rest = here.rest[:len(here.rest)-1]
		if fd, err := unix.Openat(here.fd(), name, directory, 0); err == nil { // else it went away, or nobody may look
			w.enter(fd)
		}
	}
	return w.total, nil
}

const (
	directory = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	// kept is how many directories of the way down are held open.
	kept = 64
	// batch is how many names are read at once.
	batch = 1024
)

// walk goes through a tree from one directory to the next, never by a path: who makes directories a hundred thousand levels deep, which every pod
// may, would have paths fill the memory, and the kernel go through all of them for each file.
type walk struct {
	total runtime.DiskUse
	seen  map[inode]bool // files with several names
	way   []*visit
}

type inode struct{ dev, ino uint64 }

// visit is a directory on the way from the root to where the walk is. Beyond the first ones it is closed while the walk is further down.
type visit struct {
	dir  *os.File
	id   inode
	rest []string // what is still to be gone into
}

func (v *visit) fd() int { return int(v.dir.Fd()) }

// enter goes into a directory and counts what is in it.
func (w *walk) enter(fd int) {
	v := &visit{dir: os.NewFile(uintptr(fd), "directory")}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		v.id = inode{uint64(st.Dev), st.Ino}
		if len(w.way) == 0 {
			w.count(&st)
		}
	}
	for more := true; more; {
		names, err := v.dir.Readdirnames(batch)
		more = err == nil
		for _, name := range names {
			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			if w.count(&st); st.Mode&unix.S_IFMT == unix.S_IFDIR {
				v.rest = append(v.rest, name)
			}
		}
	}
	if n := len(w.way); n > kept {
		w.way[n-1].dir.Close() // it was only read
	}
	w.way = append(w.way, v)
}

func (w *walk) count(st *unix.Stat_t) {
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		id := inode{uint64(st.Dev), st.Ino}
		if w.seen[id] {
			return
		}
		w.seen[id] = true
	}
	w.total = w.total.Plus(runtime.DiskUse{Bytes: st.Blocks * 512, Inodes: 1})
}

// up goes back to the directory above. If the walk's was moved elsewhere meanwhile, it goes back to the last one that is open.
func (w *walk) up() {
	n := len(w.way) - 1
	if n-1 <= kept {
		w.leave(n)
		return
	}
	above := w.way[n-1]
	fd, err := unix.Openat(w.way[n].fd(), "..", directory, 0)
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(fd, &st)
		above.dir = os.NewFile(uintptr(fd), "directory")
	}
	if err != nil || above.id != (inode{uint64(st.Dev), st.Ino}) {
		w.leave(kept + 1)
		return
	}
	w.leave(n)
}

// leave ends the visits from the nth one on. Those that are closed already stay so.
func (w *walk) leave(n int) {
	for _, v := range w.way[n:] {
		v.dir.Close()
	}
	w.way = w.way[:n]
}
