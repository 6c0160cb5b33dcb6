package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestWithLibraries: a dynamic program runs on what withLibraries gives it alone.
func TestWithLibraries(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root for chroot")
	}
	files, err := withLibraries("usr/bin/sh", "/bin/sh", "/")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 3 || files["lib/libc.so.6"] == "" {
		t.Skipf("SKIPPED: /bin/sh is no dynamic program of glibc: %v", files)
	}
	root := t.TempDir()
	for path, from := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), mustRead(t, from), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("chroot", root, "/usr/bin/sh", "-c", "echo it runs").CombinedOutput()
	if err != nil || string(out) != "it runs\n" {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := withLibraries("bin/x", filepath.Join(root, "nosuch"), "/"); err == nil {
		t.Error("a program that is not there has libraries")
	}
	script := filepath.Join(root, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := withLibraries("bin/x", script, "/"); err == nil {
		t.Error("a script has libraries")
	}
}
