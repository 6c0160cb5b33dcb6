package localstorage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"bonsai/pkg/kubelet/filetree"
	"bonsai/pkg/kubelet/runtime"
)

// tree is what the files below dir take on the disk: blocks and inodes, each file once however many names it has,
// without following links or going into what is mounted there. Files that go meanwhile count nothing; a directory that
// is not there is empty.
func tree(ctx context.Context, dir string) (runtime.DiskUse, error) {
	root, err := filetree.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return runtime.DiskUse{}, nil
	}
	if err != nil {
		return runtime.DiskUse{}, fmt.Errorf("measure the directory %s: %w", dir, err)
	}
	s := &sum{seen: map[inode]bool{}}
	var st unix.Stat_t
	if unix.Fstat(int(root.Fd()), &st) == nil {
		s.count(&st)
	}
	err = filetree.Walk(ctx, root, s)
	return s.total, err
}

// sum counts files.
type sum struct {
	total runtime.DiskUse
	seen  map[inode]bool // files with several names
}

type inode struct{ dev, ino uint64 }

// Entry implements filetree.Visitor.
func (s *sum) Entry(dir int, name string) bool {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	s.count(&st)
	return st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// Leave implements filetree.Visitor. A directory that cannot be entered has disappeared, or is not readable.
func (*sum) Leave(int, string, error) {}

func (s *sum) count(st *unix.Stat_t) {
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		id := inode{uint64(st.Dev), st.Ino}
		if s.seen[id] {
			return
		}
		s.seen[id] = true
	}
	s.total = s.total.Plus(runtime.DiskUse{Bytes: st.Blocks * 512, Inodes: 1})
}
