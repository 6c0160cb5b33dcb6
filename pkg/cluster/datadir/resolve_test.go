package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestResolve: one directory has one path, whether it exists, and however it is named. What can be no cluster's has
// none.
func TestResolve(t *testing.T) {
	t.Parallel()
	real, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{real + "/a/b", link + "/a/b", link + "/./x/../a/b/"} {
		if got, err := Resolve(path); err != nil || got != real+"/a/b" {
			t.Errorf("%s: %s, %v", path, got, err)
		}
	}
	root := filepath.Join(t.TempDir(), "root")
	if err := os.Symlink("/", root); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "data", "./data", "/", "/..", root} {
		got, err := Resolve(path)
		if err == nil || !strings.HasPrefix(err.Error(), "must be an absolute path below /") {
			t.Errorf("%q: %s, %v", path, got, err)
		}
	}
	file := filepath.Join(real, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Resolve(file + "/data"); err == nil ||
		!strings.Contains(err.Error(), file+"/data: not a directory") {
		t.Errorf("below a file: %s, %v", got, err)
	}
}
