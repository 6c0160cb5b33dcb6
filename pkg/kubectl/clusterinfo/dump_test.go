package clusterinfo

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

// TestDumpStaysInItsDirectory: no name that a server gives leads out of the directory of the dump.
func TestDumpStaysInItsDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := &dump{directory: filepath.Join(dir, "out")}
	err := o.write("default/../../stolen", nil)
	if err == nil || !strings.Contains(err.Error(), "is no name of a file") {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v was made (%v)", entries, err)
	}
}

// TestDumpStopsAtARefusal: what a server does not list is an error, and no dump is announced.
func TestDumpStopsAtARefusal(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t)
	dir := t.TempDir()
	got, code := writetest.Run(t, NewCommand, s.URL, "", "cluster-info", "dump", "--output-directory="+dir,
		"--namespaces=default")
	if code != 1 || strings.Contains(got, "dumped") || !strings.Contains(got, "NotFound") {
		t.Errorf("code %d: %s", code, got)
	}
	if _, err := os.Stat(filepath.Join(dir, "nodes.json")); err != nil {
		t.Errorf("what was listed before is not there: %v", err)
	}
}

// TestDumpIsTheUsersAlone: nobody else reads files or directories of a dump, whose logs may have secrets.
func TestDumpIsTheUsersAlone(t *testing.T) {
	t.Parallel()
	o := &dump{directory: filepath.Join(t.TempDir(), "out")}
	if err := o.write("default/pods.json", func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{"default": 0o700, "default/pods.json": 0o600} {
		if at, err := os.Stat(filepath.Join(o.directory, path)); err != nil || at.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, at.Mode(), err, want)
		}
	}
}
