package durable

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReplace(t *testing.T) {
	t.Parallel()
	within := func(next, path string, data []byte) error {
		root, err := os.OpenRoot(filepath.Dir(path))
		if err != nil {
			return err
		}
		defer root.Close()
		next, err = filepath.Rel(root.Name(), next)
		if err != nil {
			return err
		}
		return ReplaceIn(root, next, filepath.Base(path), data)
	}
	for name, replace := range map[string]func(next, path string, data []byte) error{
		"Replace": Replace, "ReplaceIn": within,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replaces(t, replace)
		})
	}
}

func replaces(t *testing.T, replace func(next, path string, data []byte) error) {
	dir := t.TempDir()
	path, next := filepath.Join(dir, "f"), filepath.Join(dir, "f.new")
	// What a crash left half written is overwritten.
	if err := os.WriteFile(next, []byte("much longer than what comes"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"first", "2"} {
		if err := replace(next, path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("%q, %v", got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Stat(next); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", next, err)
	}
	if err := replace(filepath.Join(dir, "gone", "f.new"), path, nil); err == nil {
		t.Error("what could not be written was told of as written")
	}
}

func TestRename(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.Mkdir(from, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Rename(from, to); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(to); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{"renamed": Rename(from, to), "synced": SyncDir(from)} {
		if !os.IsNotExist(err) {
			t.Errorf("what is not there was %s: %v", name, err)
		}
	}
}

func TestFlush(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Flush(dir); err != nil {
		t.Error(err)
	}
	if err := Flush(filepath.Join(dir, "gone")); !os.IsNotExist(err) {
		t.Errorf("what is not there was flushed: %v", err)
	}
}
