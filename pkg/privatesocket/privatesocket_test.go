package privatesocket

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestListen: the socket is its owner's alone from its beginning, takes the place of what was left there, and changes
// nothing that a link in its place leads to.
func TestListen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, before := range map[string]func(path string) error{
		"nothing": func(string) error { return nil },
		"a link":  func(path string) error { return os.Symlink(other, path) },
		"a socket": func(path string) error {
			l, err := net.Listen("unix", path)
			if err == nil {
				l.(*net.UnixListener).SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		},
	} {
		path := filepath.Join(dir, name)
		if err := before(path); err != nil {
			t.Fatal(err)
		}
		l, err := Listen(t.Context(), path)
		if err != nil {
			t.Fatal(name, err)
		}
		defer l.Close()
		if info, err := os.Lstat(path); err != nil || info.Mode() != fs.ModeSocket|mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(name, err)
		}
		conn.Close()
	}
	if info, err := os.Stat(other); err != nil || info.Mode() != 0o644 {
		t.Error(info, err)
	}
	blocked := filepath.Join(dir, "blocked")
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), blocked); err == nil {
		t.Error("a directory is removed")
	}
}
