package node

import (
	"os"
	"path/filepath"
	"testing"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan/programs"
)

// TestLinkPlugins: a node has the system's plug-ins and ours, also after either has moved; a plug-in that somebody
// installed stays.
func TestLinkPlugins(t *testing.T) {
	t.Parallel()
	dir, system := filepath.Join(t.TempDir(), "opt", "cni", "bin"), t.TempDir()
	for path, content := range map[string]string{filepath.Join(system, "bridge"): "system's",
		filepath.Join(system, "loopback"): "system's", filepath.Join(dir, "bridge"): "installed"} {
		if err := host.WriteFile(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	for _, bin := range []string{"/first", "/second"} {
		n := &Config{BinDir: bin}
		if err := n.linkPlugins(dir, system); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"loopback": filepath.Join(system, "loopback"),
			IPAMPlugin: filepath.Join(bin, IPAMPlugin)} {
			if target, err := os.Readlink(filepath.Join(dir, name)); err != nil || target != want {
				t.Errorf("%s leads to %q (%v), want %s", name, target, err, want)
			}
		}
		if data, err := os.ReadFile(filepath.Join(dir, "bridge")); err != nil || string(data) != "installed" {
			t.Errorf("the installed plug-in: %q, %v", data, err)
		}
	}
	if err := (&Config{}).linkPlugins(dir, filepath.Join(system, "none")); err == nil {
		t.Error("a system without plug-ins was taken")
	}
}

// TestPluginDir: the bundled plug-ins come before the machine's, unless the cluster wants the machine's.
func TestPluginDir(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	bundled := filepath.Join(programs.Dir(bin), "cni")
	for _, choice := range []string{"", programs.Machine} {
		if got := PluginDir(bin, choice); got == bundled {
			t.Errorf("%q: found %s, which does not exist", choice, got)
		}
	}
	if err := os.MkdirAll(bundled, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bundled, "bridge"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := PluginDir(bin, ""); got != bundled {
		t.Errorf("found %q, want %s", got, bundled)
	}
	if got := PluginDir(bin, programs.Machine); got == bundled {
		t.Error("the machine's are wanted, and the bundled ones found")
	}
}
