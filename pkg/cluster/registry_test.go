package cluster

import (
	"strings"
	"testing"

	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
)

// TestRegistryAddon: with the registry its port is published and taken, and the nodes know where it is; without it
// there is none of that.
func TestRegistryAddon(t *testing.T) {
	t.Parallel()
	plain := plan.Default("/data", "/bin")
	if len(plain.Mappings()) > 0 || len(plain.RegistryMirrors()) > 0 {
		t.Errorf("without it: %v, %v", plain.Mappings(), plain.RegistryMirrors())
	}
	c, err := plain.ParseAddons([]string{"registry", "metrics-server=true", "metrics-server=false"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if got := c.Mappings(); len(got) != 1 || got[0].Listens().String() != "127.0.0.1:5001" || got[0].NodePort != 30050 {
		t.Errorf("published: %v", got)
	}
	if got := node.Of(c, c.Nodes[0]).Mirrors; len(got) != 1 ||
		got[0] != (plan.Mirror{Registry: "localhost:5001", URL: "http://10.96.0.11:5000"}) {
		t.Errorf("mirrors: %v", got)
	}
	if got := strings.Join(c.LocalImages(), " "); got != "pause coredns registry busybox" {
		t.Errorf("images: %s", got)
	}
	mapping, err := plan.ParsePortMapping("5001:30080")
	if err != nil {
		t.Fatal(err)
	}
	c.PortMappings = []plan.PortMapping{mapping}
	if err := c.Validate(); err == nil ||
		!strings.Contains(err.Error(), "--port: 127.0.0.1:5001 is taken by the cluster itself") {
		t.Error(err)
	}
	c.PortMappings = nil
	if c, err = c.ParseAddons([]string{"local-path=false"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--addons: registry needs local-path") {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"no-such":        "no-such: there is no such add-on (coredns, local-path, metrics-server, registry, traefik)",
		"registry=maybe": `registry must be true or false, not "maybe"`} {
		if _, err := c.ParseAddons([]string{text}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
