package host

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "f")
	write := func(content string) os.FileInfo {
		t.Helper()
		if err := WriteFile(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content || info.Mode() != 0o600 {
			t.Errorf("%q, %v, %v, not %q", got, info.Mode(), err, content)
		}
		return info
	}
	first := write("one")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if again := write("one"); !os.SameFile(first, again) {
		t.Error("the same content was written again")
	}
	if other := write("two"); os.SameFile(first, other) {
		t.Error("the file was overwritten in place")
	}
	// A link to what has the content is no file of ours.
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.WriteFile(elsewhere, []byte("three"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, path); err != nil {
		t.Fatal(err)
	}
	write("three")
	if info, err := os.Stat(elsewhere); err != nil || info.Mode() != 0o644 {
		t.Errorf("what the link led to: %v, %v", info, err)
	}
}
