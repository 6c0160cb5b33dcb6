package images

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOnlyAMarkedTreeIsFinished: what an interrupted build or copy left is built again, what is somebody else's is
// refused and kept.
func TestOnlyAMarkedTreeIsFinished(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		files         []string // in the directory; nil: it does not exist
		finished, bad bool
	}{
		{name: "none"},
		{name: "empty", files: []string{}},
		{name: "a part, unmarked", files: []string{"docker/registry/v2/blobs/sha256/ab/abc/data"}},
		{name: "marked", files: []string{"docker/registry/v2/blobs/sha256/ab/abc/data", "finished"}, finished: true},
		{name: "somebody else's", files: []string{"holiday.jpg"}, bad: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			at := t.TempDir()
			dir := filepath.Join(at, "images")
			if test.files != nil {
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, f := range test.files {
				write(t, filepath.Join(dir, f))
			}
			got, err := Finished(dir)
			if got != test.finished || (err != nil) != test.bad {
				t.Errorf("Finished: %v, %v; want %v, an error: %v", got, err, test.finished, test.bad)
			}
			built := filepath.Join(at, "new")
			write(t, filepath.Join(built, registryDir, "whole"))
			err = tree(built).finish(dir)
			if kept := test.finished || test.bad; (err != nil) != kept {
				t.Fatalf("finish: %v, want an error: %v", err, kept)
			}
			if err != nil {
				for _, f := range test.files {
					if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
						t.Error(err)
					}
				}
				return
			}
			if _, err := os.Stat(filepath.Join(dir, registryDir, "whole")); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(dir, registryDir, "registry")); err == nil {
				t.Error("the unfinished tree is mixed with the new one")
			}
			if done, err := Finished(dir); !done || err != nil {
				t.Errorf("Finished after finish: %v, %v", done, err)
			}
		})
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}
