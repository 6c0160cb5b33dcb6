package host

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestReadUsage: the numbers are those of the right fields, whatever the process calls itself.
func TestReadUsage(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	if err := os.Mkdir(filepath.Join(proc, "7"), 0o755); err != nil {
		t.Fatal(err)
	}
	const line = "7 (a ) (b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 8 0 1000 1000000 300 18446744073709551615 1 1\n"
	if err := os.WriteFile(filepath.Join(proc, "7", "stat"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadUsage(proc, 7)
	if want := (Usage{RSS: 300 * int64(os.Getpagesize()), CPU: 3 * time.Second}); err != nil || got != want {
		t.Errorf("%+v, not %+v, %v", got, want, err)
	}
	if got, err := ReadUsage("/proc", os.Getpid()); err != nil || got.RSS < 1<<20 {
		t.Errorf("this process: %+v, %v", got, err)
	}
	if _, err := ReadUsage(proc, 8); err == nil {
		t.Error("a process that has ended has a usage")
	}
}

// TestHostPIDs: of the processes here only those in the other's namespace are told, by their pids there.
func TestHostPIDs(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	for pid, p := range map[int]struct{ space, status string }{
		100: {"pid:[2]", "Name:\tbonsai\nNSpid:\t100\t1\n"},
		101: {"pid:[2]", "Name:\tkubelet\nNSpid:\t101\t22\n"},
		102: {"pid:[3]", "Name:\tpause\nNSpid:\t102\t30\t1\n"},
		1:   {"pid:[1]", "Name:\tinit\nNSpid:\t1\n"},
	} {
		dir := filepath.Join(proc, fmt.Sprint(pid))
		if err := os.MkdirAll(filepath.Join(dir, "ns"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(p.space, filepath.Join(dir, "ns", "pid")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "status"), []byte(p.status), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := HostPIDs(proc, 100)
	if len(got) != 2 || got[1] != 100 || got[22] != 101 {
		t.Errorf("%v", got)
	}
	if got := HostPIDs(proc, 999); len(got) != 0 {
		t.Errorf("of a process that has ended: %v", got)
	}
}
