package stats

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Files counts what processes have open. It looks at each process once, for there is none that is not in several
// cgroups, one around the other: it is good for one look at all of them. It is not safe for concurrent use.
type Files struct {
	proc string
	seen map[int]open
}

// open is what one process has open.
type open struct{ files, sockets uint64 }

// NewFiles returns a Files that has seen nothing; root is where /proc is found.
func NewFiles(root string) *Files {
	return &Files{proc: filepath.Join(root, "proc"), seen: map[int]open{}}
}

// Open is how many file descriptors the processes have, and how many of these are sockets. One that ends meanwhile has
// none.
func (f *Files) Open(pids []int) (files, sockets uint64) {
	for _, pid := range pids {
		n, ok := f.seen[pid]
		if !ok {
			n = f.look(pid)
			f.seen[pid] = n
		}
		files, sockets = files+n.files, sockets+n.sockets
	}
	return files, sockets
}

func (f *Files) look(pid int) (n open) {
	path := filepath.Join(f.proc, strconv.Itoa(pid), "fd")
	dir, err := os.Open(path)
	if err != nil {
		return n
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what could be listed counts
	for _, name := range names {
		n.files++
		if to, err := os.Readlink(filepath.Join(path, name)); err == nil && strings.HasPrefix(to, "socket:") {
			n.sockets++
		}
	}
	return n
}

// MayOpen is how many files a process may have open at most, as its own soft limit says, -1 without one; false: that is
// not known.
func (f *Files) MayOpen(pid int) (soft int64, known bool) {
	text, err := os.ReadFile(filepath.Join(f.proc, strconv.Itoa(pid), "limits"))
	if err != nil {
		return 0, false
	}
	// Max open files            1024                 4096                 files
	for line := range strings.Lines(string(text)) {
		rest, is := strings.CutPrefix(line, "Max open files")
		fields := strings.Fields(rest)
		if !is || len(fields) == 0 {
			continue
		}
		if fields[0] == "unlimited" {
			return -1, true
		}
		n, err := strconv.ParseInt(fields[0], 10, 64)
		return n, err == nil
	}
	return 0, false
}

// PIDs are all processes there are.
func (f *Files) PIDs() (out []int) {
	entries, err := os.ReadDir(f.proc)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, pid)
		}
	}
	return out
}
