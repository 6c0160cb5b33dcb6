package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLoadLocal: what is no file is asked of Docker, then of containerd's namespaces, and what nobody has is told
// with all answers.
func TestLoadLocal(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	archive := filepath.Join(dir, "app.tar")
	if err := WriteRecipe(archive, Recipe{Ref: "docker.io/library/app:1", Dirs: []string{"tmp"}}); err != nil {
		t.Fatal(err)
	}
	program := func(name, script string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := Stores{Spool: t.TempDir()}
	if _, err := c.loadLocal(t.Context(), "app:1"); err == nil ||
		!strings.Contains(err.Error(),
			"is no file, and no image that this machine has: Docker: there is no program docker") {
		t.Error(err)
	}
	program("docker", "echo no such image: $2 >&2; exit 1")
	program("ctr", `[ "$*" = "--namespace k8s.io images export - docker.io/library/app:1" ] || { echo "$*: not found" >&2; exit 1; }; exec /bin/cat `+archive)
	if names, err := c.loadLocal(t.Context(), "app:1"); err != nil ||
		strings.Join(names, " ") != "docker.io/library/app:1" {
		t.Errorf("from containerd: %v, %v", names, err)
	}
	program("ctr", "echo not found >&2; exit 1")
	if _, err := c.loadLocal(t.Context(), "app:1"); err == nil ||
		!strings.Contains(err.Error(), "Docker: no such image: app:1\ncontainerd's namespace default: not found") {
		t.Error(err)
	}
	program("docker", `[ "$*" = "save app:1" ] && exec /bin/cat `+archive)
	if names, err := c.loadLocal(t.Context(), "app:1"); err != nil || len(names) != 1 {
		t.Errorf("from Docker: %v, %v", names, err)
	}
	if _, err := c.loadLocal(t.Context(), "No Name"); err == nil ||
		!strings.Contains(err.Error(), "no image's name either") {
		t.Error(err)
	}
}
