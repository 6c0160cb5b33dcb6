package datadir

import (
	"os"
	"path/filepath"
	"testing"

	"bonsai/pkg/cluster/plan"
)

// TestResolve: one directory has one path, whether it exists, and however it is named.
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
	if got, err := Resolve("data"); err != nil || plan.Default(got, "").Validate() == nil {
		t.Errorf("a relative path: %s, %v", got, err)
	}
}
