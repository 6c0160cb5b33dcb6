package plan

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"bonsai/pkg/cluster/plan/programs"
)

// TestCheckChange: what a running cluster cannot become is refused in the user's own notation, with the way that
// loses nothing.
func TestCheckChange(t *testing.T) {
	t.Parallel()
	changes := map[string]struct {
		change func(*Config)
		want   string
	}{
		"BinDir": {func(c *Config) { c.BinDir = "/other" }, "programs: /bin now, /other wanted"},
		"Nodes":  {func(c *Config) { c.Nodes = NodesUpTo(3) }, "nodes: n1 n2 now, n1 n2 n3 wanted"},
		"ControlPlaneEndpoint": {func(c *Config) {
			c.ControlPlaneEndpoint = "api.example.com:6443"
		}, "control-plane endpoint: none now, api.example.com:6443 wanted"},
		"Nodes.Mounts": {func(c *Config) {
			c.Nodes = []Node{{Number: 1, Mounts: []Mount{{"/a", "/b", true}}}, {Number: 2}}
		}, "mounts of n1: none now, /a:/b:ro wanted"},
		"Egress": {func(c *Config) { c.Egress = !c.Egress }, "egress: true now, false wanted"},
		"Mirrors": {func(c *Config) {
			c.Mirrors = []Mirror{{"docker.io", "http://m"}}
		}, "registry mirrors: none now, docker.io=http://m wanted"},
		"OCIRuntime": {func(c *Config) { c.OCIRuntime = "crun" }, "OCI runtime: none now, crun wanted"},
		"Programs":   {func(c *Config) { c.Programs = programs.Machine }, "programs: bundled now, machine wanted"},
		"AdvertiseAddress": {func(c *Config) {
			c.AdvertiseAddress = netip.MustParseAddr("192.0.2.1")
		}, "advertise address: none now, 192.0.2.1 wanted"},
		"Ports": {func(c *Config) { c.Ports.API = 7443 }, "API port: 6443 now, 7443 wanted"},
		"FeatureGates": {func(c *Config) {
			c.FeatureGates = map[string]bool{"A": true}
		}, "feature gates: none now, A=true wanted"},
		"NoTraces": {func(c *Config) { c.NoTraces = true }, "traces: true now, false wanted"},
		"ComponentFlags": {func(c *Config) {
			c.ComponentFlags = map[string]map[string]string{"etcd": {"v": "4"}}
		}, "component flags: none now, etcd --v=4 wanted"},
	}
	// What a user does not choose of a cluster.
	covered := map[string]bool{"DataDir": true, "Joined": true, "Containerized": true, "Addons": true,
		"Extensible": true, "Peers": true}
	for name, tc := range changes {
		field, _, _ := strings.Cut(name, ".")
		covered[field] = true
		is := Default("/data", "/bin")
		is.Nodes = NodesUpTo(2)
		wanted := is
		tc.change(&wanted)
		err := is.CheckChange(wanted, true)
		if err == nil || !strings.Contains(err.Error(), tc.want) ||
			!strings.Contains(err.Error(), "bonsai stop --data-dir /data") ||
			strings.Contains(err.Error(), "bonsai down") {
			t.Errorf("%s: no %q in: %v", name, tc.want, err)
		}
		if err := is.CheckChange(wanted, false); err != nil {
			t.Errorf("%s of a stopped cluster: %v", name, err)
		}
	}
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"Nodes.Labels": {func(c *Config) {
			c.Nodes = []Node{{Number: 1, Labels: map[string]string{"b": "2", "a": "1"}}, {Number: 2}}
		}, "labels of n1: none now, a=1 b=2 wanted"},
		"Nodes.Taints": {func(c *Config) {
			c.Nodes = []Node{{Number: 1, Taints: []string{"a=b:NoSchedule"}}, {Number: 2}}
		}, "taints of n1: none now, a=b:NoSchedule wanted"},
		"PortMappings": {func(c *Config) {
			*c = publishing(*c, "5353:30053/udp")
		}, "published ports: none now, 127.0.0.1:5353:30053/udp wanted"},
		"AddonChoices": {func(c *Config) {
			c.AddonChoices = map[string]bool{"metrics-server": true, "registry": true}
		}, "add-on metrics-server: off now, on wanted; add-on registry: off now, on wanted"},
		"KubeconfigMode": {func(c *Config) {
			c.KubeconfigMode = 0o640
		}, "mode of the kubeconfig: none now, 0640 wanted"},
	} {
		field, _, _ := strings.Cut(name, ".")
		covered[field] = true
		is := Default("/data", "/bin")
		is.Nodes = NodesUpTo(2)
		wanted := is
		tc.change(&wanted)
		if err := is.CheckChange(wanted, true); err != nil || Difference(is, wanted) != tc.want {
			t.Errorf("%s of a running cluster: %v, %s", name, err, Difference(is, wanted))
		}
		wanted.Egress = false
		if err := is.CheckChange(wanted, true); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s beside what takes a stop: %v", name, err)
		}
	}
	for _, running := range []bool{true, false} {
		is := Default("/data", "/bin")
		is.Nodes = NodesUpTo(3)
		wanted := is
		wanted.Nodes = []Node{is.Nodes[0]}
		want := "the cluster in /data has the nodes n2 n3, and up removes none. bonsai --data-dir /data node remove NODE removes a node with everything on it"
		if err := is.CheckChange(wanted, running); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "bonsai --data-dir /data start") == running {
			t.Errorf("fewer nodes, running %v: %v", running, err)
		}
	}
	for name, change := range map[string]func(*Config){
		"Name":          func(c *Config) { c.Name = "dev" },
		"ControlPlanes": func(c *Config) { c.ControlPlanes = 3 },
		"IPFamily":      func(c *Config) { c.IPFamily = Dual },
		"NodeSubnet":    func(c *Config) { c.NodeSubnet = netip.MustParsePrefix("10.90.0.0/24") },
		"PodSubnet":     func(c *Config) { c.PodSubnet = netip.MustParsePrefix("10.91.0.0/16") },
		"ServiceSubnet": func(c *Config) { c.ServiceSubnet = netip.MustParsePrefix("10.92.0.0/16") },
	} {
		covered[name] = true
		is := Default("/data", "/bin")
		wanted := is
		change(&wanted)
		for _, running := range []bool{true, false} {
			if err := is.CheckChange(wanted, running); err == nil ||
				!strings.Contains(err.Error(), "deletes this one with everything in it") {
				t.Errorf("%s, running %v: %v", name, running, err)
			}
		}
	}
	covered["EncryptSecrets"] = true
	for _, encrypted := range []bool{true, false} {
		is := Default("/data", "/bin")
		is.EncryptSecrets = encrypted
		wanted := is
		wanted.EncryptSecrets = !encrypted
		want := map[bool]string{true: "--encrypt-secrets=false is for a new cluster",
			false: "bonsai --data-dir /data encryption enable"}[encrypted]
		for _, running := range []bool{true, false} {
			if err := is.CheckChange(wanted, running); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("encrypted %t, running %t: %v", encrypted, running, err)
			}
		}
	}
	for field := range reflect.TypeFor[Config]().Fields() {
		if !covered[field.Name] {
			t.Errorf("nothing says how a change of %s is told", field.Name)
		}
	}
}

// TestDifferenceSecrets: a difference has no password and no token, and none goes unnoticed.
func TestDifferenceSecrets(t *testing.T) {
	t.Parallel()
	of := func(secret string) Config {
		c := Default("/data", "/bin")
		c.Mirrors = []Mirror{{"docker.io", "https://me:" + secret + "@m"}}
		c.ComponentFlags = map[string]map[string]string{"kube-apiserver": {"a-token": secret}}
		return c
	}
	if got := Difference(of("one"), of("two")); got !=
		"registry mirrors: another secret wanted; component flags: another secret wanted" {
		t.Error(got)
	}
	want := of("one")
	want.ComponentFlags["kube-apiserver"]["v"] = "4"
	if got := Difference(of("one"), want); got != "component flags: kube-apiserver --a-token=(left out) now, "+
		"kube-apiserver --a-token=(left out) kube-apiserver --v=4 wanted" {
		t.Error(got)
	}
}
