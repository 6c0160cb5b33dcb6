package volume_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"bonsai/pkg/kubelet/volume"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), []byte("A='1'"), 0o600),
		os.WriteFile(filepath.Join(dir, "large"), make([]byte, 1<<20+1), 0o600),
		os.Symlink("file", filepath.Join(dir, "link")), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	m := volume.Mounted{HostPath: dir}
	for _, name := range []string{"file", "link", "/file"} {
		if text, err := m.ReadFile(name); err != nil || string(text) != "A='1'" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := m.ReadFile("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	for _, name := range []string{"pipe", "large", "."} {
		if _, err := m.ReadFile(name); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
