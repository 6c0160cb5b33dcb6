package machine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/plan"
)

// TestCheckSpace: a data directory that cannot be used is refused before anything is made, with the reason. Each runs
// on a small file system of its own.
func TestCheckSpace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root to mount a small file system")
	}
	for _, c := range []struct {
		name, options string
		flags         uintptr
		fill          bool
		want          error
		text          string
	}{
		{"roomy", "size=2g", 0, false, nil, ""},
		{"small", "size=64m", 0, false, unix.ENOSPC, "64 MiB are free, 512 MiB are needed"},
		{"full", "size=1m", 0, true, unix.ENOSPC, "cannot be written"},
		{"without inodes", "size=2g,nr_inodes=1", 0, false, unix.ENOSPC, "cannot be written"},
		{"read-only", "size=2g", unix.MS_RDONLY, false, unix.EROFS, "cannot be written"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := unix.Mount("tmpfs", dir, "tmpfs", c.flags, c.options); err != nil {
				t.Skipf("SKIPPED: cannot mount: %v", err)
			}
			t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
			if c.fill {
				if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 2<<20),
					0o600); !errors.Is(err, unix.ENOSPC) {
					t.Fatal(err)
				}
			}
			for _, data := range []string{dir, filepath.Join(dir, "to", "be", "made")} {
				config := plan.Default(data, "")
				err := CheckSpace(config)
				if !errors.Is(err, c.want) ||
					c.want != nil && (!strings.Contains(err.Error(), data) || !strings.Contains(err.Error(), c.text)) {
					t.Errorf("%s: %v", data, err)
				}
			}
			if files, err := filepath.Glob(filepath.Join(dir, ".bonsai*")); err != nil || len(files) > 0 {
				t.Errorf("left: %v, %v", files, err)
			}
		})
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	config := plan.Default(file, "")
	if err := CheckSpace(config); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a file: %v", err)
	}
}
