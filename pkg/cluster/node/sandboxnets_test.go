package node

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bonsai/pkg/cluster/host"
)

// TestClearLostNetworks: before containerd starts, what belongs to the network of a sandbox without a task goes;
// everything else stays, and all of it if the tasks cannot be read.
func TestClearLostNetworks(t *testing.T) {
	t.Parallel()
	const spec = `{"linux":{"namespaces":[{"type":"pid"},{"type":"network","path":"/var/run/netns/cni-used"}]}}`
	all := []string{"addresses/pods/10.244.0.2", "addresses/pods/10.244.0.3", "addresses/pods/fd00::2",
		"addresses/pods/fd00::3", "addresses/pods/last_reserved_ip.0", "addresses/pods/lock", "spaces/bonsai",
		"spaces/cni-lost", "spaces/cni-used"}
	for name, c := range map[string]struct {
		spec string
		fail bool
		left []string
	}{
		"read": {spec, false,
			[]string{"addresses/pods/10.244.0.2", "addresses/pods/fd00::2", "addresses/pods/last_reserved_ip.0",
				"addresses/pods/lock", "spaces/bonsai", "spaces/cni-used"}},
		"unreadable": {"{", true, all},
	} {
		dir := t.TempDir()
		files := map[string]string{"tasks/sandbox/config.json": c.spec}
		for _, path := range all {
			files[path] = ""
		}
		files["addresses/pods/10.244.0.2"], files["addresses/pods/10.244.0.3"] = "sandbox\r\neth0", "gone\r\neth0"
		files["addresses/pods/fd00::2"], files["addresses/pods/fd00::3"] = "sandbox\r\neth0", "gone\r\neth0"
		files["addresses/pods/last_reserved_ip.0"] = "10.244.0.3"
		for path, content := range files {
			if err := host.WriteFile(filepath.Join(dir, path), []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		err := clearLostNetworks(filepath.Join(dir, "tasks"), filepath.Join(dir, "spaces"),
			filepath.Join(dir, "addresses"), slog.New(slog.DiscardHandler))
		if (err != nil) != c.fail {
			t.Errorf("%s: %v", name, err)
		}
		var left []string
		for _, part := range []string{"addresses", "spaces"} {
			filepath.WalkDir(filepath.Join(dir, part), func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					rel, _ := filepath.Rel(dir, path)
					left = append(left, rel)
				}
				return err
			})
		}
		if !slices.Equal(left, c.left) {
			t.Errorf("%s: left %v, want %v", name, left, c.left)
		}
	}
	if err := clearLostNetworks(filepath.Join(t.TempDir(), "none"), os.DevNull, os.DevNull,
		slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("containerd's first start: %v", err)
	}
}

// TestRemoveBrokenResults: files that a loss of power has left empty or half written go, and readable ones stay.
func TestRemoveBrokenResults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"empty": "", "half": `{"kind":"cniCa`, "zeros": "\x00\x00",
		"whole": `{"kind":"cniCacheV1"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := removeBrokenResults(dir, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if want := []string{filepath.Join(dir, "directory"), filepath.Join(dir, "whole")}; !slices.Equal(left, want) {
		t.Errorf("left: %q", left)
	}
}
