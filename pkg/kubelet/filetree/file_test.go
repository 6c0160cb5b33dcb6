package filetree

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A pod may put anything in place of a file that the kubelet reads.
func TestOpenFile(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600),
		os.Mkdir(in("sub"), 0o700), os.WriteFile(in("sub/file"), []byte("text"), 0o600),
		unix.Mkfifo(in("pipe"), 0o600), os.Symlink("sub/file", in("link")), os.Symlink(outside, in("out")),
		os.Symlink("sub", in("dirlink")))
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]func(string) (*os.File, error){
		"OpenFile":      func(p string) (*os.File, error) { return OpenFile(in(p)) },
		"OpenFileBelow": func(p string) (*os.File, error) { return OpenFileBelow(dir, p) },
	}
	for _, c := range []struct {
		path         string
		plain, below bool
	}{
		{"sub/file", true, true}, {"sub", false, false}, {"pipe", false, false}, {"link", false, true},
		{"none", false, false},
		{"out/secret", true, false}, {"dirlink/file", true, true},
		{"../" + filepath.Base(outside) + "/secret", true, false}, {"../sub/file", false, true},
	} {
		for name, want := range map[string]bool{"OpenFile": c.plain, "OpenFileBelow": c.below} {
			f, err := open[name](c.path)
			if (err == nil) != want {
				t.Errorf("%s(%q): %v", name, c.path, err)
			}
			if err != nil {
				continue
			}
			if text, err := io.ReadAll(f); err != nil || len(text) == 0 {
				t.Errorf("%s(%q): %q, %v", name, c.path, text, err)
			}
			f.Close()
		}
	}
	if _, err := OpenFile("/dev/zero"); err == nil {
		t.Error("a device was opened")
	}
	if _, err := OpenFileBelow(in("pipe"), "file"); err == nil {
		t.Error("a pipe was taken for a directory")
	}
}
