package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRegistryAddon: with the registry its port is published and taken, and the nodes know where it is; without it there is none of that.
func TestRegistryAddon(t *testing.T) {
	t.Parallel()
	plain := Default("/data", "/bin")
	if len(plain.mappings()) > 0 || len(plain.mirrors()) > 0 {
		t.Errorf("without it: %v, %v", plain.mappings(), plain.mirrors())
	}
	c, err := plain.ParseAddons([]string{"registry", "metrics-server=true", "metrics-server=false"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if got := c.mappings(); len(got) != 1 || got[0].listens().String() != "127.0.0.1:5001" || got[0].NodePort != 30050 {
		t.Errorf("published: %v", got)
	}
	if got := c.node(c.Nodes[0]).Mirrors; len(got) != 1 || got[0] != (Mirror{"localhost:5001", "http://10.96.0.11:5000"}) {
		t.Errorf("mirrors: %v", got)
	}
	if got := strings.Join(c.localImages(), " "); got != "pause coredns registry busybox" {
		t.Errorf("images: %s", got)
	}
	c.PortMappings = publishing(Config{}, "5001:30080").PortMappings
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--port: 127.0.0.1:5001 is taken by the cluster itself") {
		t.Error(err)
	}
	c.PortMappings = nil
	if c, err = c.ParseAddons([]string{"local-path=false"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--addons: registry needs local-path") {
		t.Error(err)
	}
	for text, want := range map[string]string{"no-such": "no-such: there is no such add-on (coredns, local-path, metrics-server, registry, traefik)", "registry=maybe": `registry must be true or false, not "maybe"`} {
		if _, err := c.ParseAddons([]string{text}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestLoadLocal: what is no file is asked of Docker, then of containerd's namespaces, and what nobody has is told with all answers.
func TestLoadLocal(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	archive := filepath.Join(dir, "app.tar")
	if err := WriteImage(archive, ImageRecipe{Ref: "docker.io/library/app:1", Dirs: []string{"tmp"}}); err != nil {
		t.Fatal(err)
	}
	program := func(name, script string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := Config{DataDir: dir}
	if err := os.MkdirAll(c.layout().run(), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := c.loadLocal(t.Context(), "app:1"); err == nil || !strings.Contains(err.Error(), "is no file, and no image that this machine has: Docker: there is no program docker") {
		t.Error(err)
	}
	program("docker", "echo no such image: $2 >&2; exit 1")
	program("ctr", `[ "$*" = "--namespace k8s.io images export - docker.io/library/app:1" ] || { echo "$*: not found" >&2; exit 1; }; exec /bin/cat `+archive)
	if names, err := c.loadLocal(t.Context(), "app:1"); err != nil || strings.Join(names, " ") != "docker.io/library/app:1" {
		t.Errorf("from containerd: %v, %v", names, err)
	}
	program("ctr", "echo not found >&2; exit 1")
	if _, err := c.loadLocal(t.Context(), "app:1"); err == nil || !strings.Contains(err.Error(), "Docker: no such image: app:1\ncontainerd's namespace default: not found") {
		t.Error(err)
	}
	program("docker", `[ "$*" = "save app:1" ] && exec /bin/cat `+archive)
	if names, err := c.loadLocal(t.Context(), "app:1"); err != nil || len(names) != 1 {
		t.Errorf("from Docker: %v, %v", names, err)
	}
	if _, err := c.loadLocal(t.Context(), "No Name"); err == nil || !strings.Contains(err.Error(), "no image's name either") {
		t.Error(err)
	}
}
