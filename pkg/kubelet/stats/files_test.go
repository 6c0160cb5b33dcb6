package stats

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// TestFiles: descriptors and sockets are those of all processes asked for, each looked at once; who is gone has none.
func TestFiles(t *testing.T) {
	t.Parallel()
	root := procDir(t)
	link := func(pid, fd int, to string) {
		t.Helper()
		dir := filepath.Join(root, "proc", strconv.Itoa(pid), "fd")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(dir, strconv.Itoa(fd))); err != nil {
			t.Fatal(err)
		}
	}
	link(7, 0, "/dev/null")
	link(7, 1, "socket:[12]")
	link(7, 2, "pipe:[socket:1]")
	link(8, 0, "socket:[13]")
	f := NewFiles(root)
	if files, sockets := f.Open([]int{7, 8, 9}); files != 4 || sockets != 2 {
		t.Errorf("%d files, %d sockets", files, sockets)
	}
	link(8, 1, "/dev/null") // in the same look it is not seen
	if files, sockets := f.Open([]int{8}); files != 1 || sockets != 1 {
		t.Errorf("looked at again: %d files, %d sockets", files, sockets)
	}
	if pids := f.PIDs(); !slices.Equal(pids, []int{7, 8}) {
		t.Errorf("processes: %v", pids)
	}
}

func TestMayOpen(t *testing.T) {
	t.Parallel()
	const header = "Limit                     Soft Limit           Hard Limit           Units     \n"
	for name, c := range map[string]struct {
		limits string
		want   int64
		known  bool
	}{
		"some": {header + "Max cpu time              unlimited            unlimited            seconds   \nMax open files            1024                 4096                 files     \n", 1024, true},
		"no end": {header + "Max open files            unlimited            unlimited            files     \n", -1,
			true},
		"unsaid": {header, 0, false},
		"unread": {header + "Max open files            many                 4096                 files     \n", 0,
			false},
		"nothing": {header + "Max open files\n", 0, false},
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "proc", "7"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "proc", "7", "limits"), []byte(c.limits), 0o600); err != nil {
			t.Fatal(err)
		}
		f := NewFiles(root)
		if got, known := f.MayOpen(7); got != c.want || known != c.known {
			t.Errorf("%s: %d, %t", name, got, known)
		}
		if _, known := f.MayOpen(8); known {
			t.Errorf("%s: the limit of a process that is gone", name)
		}
	}
}
