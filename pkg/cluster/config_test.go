package cluster

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"bonsai/pkg/cluster/plan"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"default", func(*Config) {}, nil},
		{"no nodes", func(c *Config) { c.Nodes = nil }, []string{"--nodes"}},
		{"ten nodes", func(c *Config) { c.Nodes = nodesUpTo(10) }, []string{"--nodes"}},
		{"relative directory", func(c *Config) { c.DataDir = "data" }, []string{"--data-dir"}},
		{"directory with a colon", func(c *Config) { c.DataDir = "/data:1" }, []string{"--data-dir: must have no colon"}},
		{"directory with a comma", func(c *Config) { c.DataDir = "/data,1" }, []string{"--data-dir: must have no colon"}},
		{"the root directory", func(c *Config) { c.DataDir = "/." }, []string{"--data-dir"}},
		{"a name", func(c *Config) { c.Name = "My_Cluster" }, []string{"--name"}},
		{"a long name", func(c *Config) { c.Name = strings.Repeat("a", 21) }, []string{"--name"}},
		{"a port of its own", func(c *Config) { *c = publishing(*c, "2379:30080") }, []string{"--port: 127.0.0.1:2379 is taken by the cluster itself"}},
		{"a port twice", func(c *Config) {
			*c = publishing(*c, "8080:30080")
			c.PortMappings = append(c.PortMappings, c.PortMappings...)
		}, []string{"--port: 127.0.0.1:8080 is given twice"}},
		{"a mirror", func(c *Config) { c.Mirrors = []Mirror{{EveryRegistry, "ten"}} }, []string{"--registry-mirror"}},
		{"all wrong", func(c *Config) { c.Nodes, c.DataDir, c.Ports.API = nil, "", 70000 }, []string{"--nodes", "--data-dir", "--api-port"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := Default("/data", "/bin")
			c.change(&config)
			err := config.Validate()
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("error %v", err)
			}
			for _, flag := range c.want {
				if !strings.Contains(err.Error(), flag) {
					t.Errorf("%v does not name %s", err, flag)
				}
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	c := Default("/data", "/bin")
	for got, want := range map[string]string{
		c.HostIP().String(): "10.77.0.1", c.NodeIP(Node{Number: 1}).String(): "10.77.0.11", c.NodeIP(Node{Number: 9}).String(): "10.77.0.19",
		c.ServiceIP().String(): "10.96.0.1", c.DNSIP().String(): "10.96.0.10", c.Server(): "https://10.77.0.1:6443",
	} {
		if got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// TestHostRules: addresses of pods, nodes and services never leave the machine, and the rest only with egress; nobody comes in by another
// link but machines that have joined; without egress nodes and pods reach the API server alone of this machine's own services.
func TestHostRules(t *testing.T) {
	t.Parallel()
	c := Default("/data", "/bin")
	out, in := `iifname "`+c.mark()+`" oifname != "`+c.mark()+`" `, `oifname "`+c.mark()+`" iifname != "`+c.mark()+`" `
	inside, outside := out+"ip daddr { 10.77.0.0/24, 10.244.0.0/16, 10.96.0.0/16 } drop", out+"drop"
	strangers, neighbours := in+"drop", `iifname != { "`+c.mark()+`", "lo" } ip daddr { 10.77.0.0/24, 10.244.0.0/16, 10.96.0.0/16 } drop`
	services, server := `iifname "`+c.mark()+`" ct state new drop`, `iifname "`+c.mark()+`" ip daddr 10.77.0.1 tcp dport 6443 accept`
	joined := in + "ip saddr @joined accept"
	shut, joinable, six := c, c, c
	shut.Egress = false
	shut.Mirrors = []Mirror{{EveryRegistry, "http://10.77.0.1:5055"}, {"docker.io", "https://mirror.example"}, {"quay.io", "https://[fd00::1]"}}
	joinable.AdvertiseAddress = netip.MustParseAddr("192.0.2.1")
	six.IPFamily = IPv6
	for name, want := range map[string]struct {
		c       Config
		has, no []string
	}{
		"egress":    {c, []string{inside, strangers, neighbours}, []string{outside, services, joined}},
		"no egress": {shut, []string{inside, outside, strangers, neighbours, server, services, `ip daddr 10.77.0.1 tcp dport 5055 accept`}, []string{joined, "fd00"}},
		"joinable":  {joinable, []string{joined, strangers, neighbours}, []string{inside, outside, services}},
		"IPv6":      {six, []string{outside, strangers, "ip6 daddr ::1 tcp dport 6443 dnat to ["}, []string{"table ip ", services, "masquerade"}},
	} {
		rules := want.c.hostRules()
		for _, rule := range want.has {
			if !strings.Contains(rules, rule) {
				t.Errorf("%s: no %s in\n%s", name, rule, rules)
			}
		}
		for _, rule := range want.no {
			if strings.Contains(rules, rule) {
				t.Errorf("%s: there is %s in\n%s", name, rule, rules)
			}
		}
	}
}

func TestContainerdMajor(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{
		"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u2": 1,
		"containerd github.com/containerd/containerd/v2 v2.3.7 abc":                   2,
		"containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da":    1,
		"containerd github.com/containerd/containerd/v2 2.1.4 ":                       2,
	} {
		if got := containerdMajor(line); got != want {
			t.Errorf("%q: %d, not %d", line, got, want)
		}
	}
}

// TestOCIRuntimes: each that the machine has is a handler in the file of either containerd, and the cluster's is the default.
func TestOCIRuntimes(t *testing.T) {
	t.Parallel()
	for major, plugin := range map[int]string{1: "io.containerd.grpc.v1.cri", 2: "io.containerd.cri.v1.runtime"} {
		toml := containerdConfig(major, true, "overlayfs", "/certs.d", "crun", []string{"runc", "crun"})
		for _, want := range []string{`default_runtime_name = "crun"`, "runtimes.crun.options]\n    BinaryName = \"crun\"\n",
			`[plugins."` + plugin + "\".containerd.runtimes.runc]\n  runtime_type = \"io.containerd.runc.v2\"\n"} {
			if !strings.Contains(toml, want) {
				t.Errorf("containerd %d: no %q in\n%s", major, want, toml)
			}
		}
		if toml := containerdConfig(major, true, "overlayfs", "/certs.d", "runc", []string{"runc"}); strings.Contains(toml, "crun") {
			t.Errorf("containerd %d, without crun:\n%s", major, toml)
		}
	}
}

// TestInternalLoopback: containerd 2.x sets up loopback devices without the plug-in; 1.x does not know how.
func TestInternalLoopback(t *testing.T) {
	t.Parallel()
	for major, want := range map[int]bool{1: false, 2: true} {
		toml := containerdConfig(major, true, "overlayfs", "/certs.d", "runc", []string{"runc"})
		if got := strings.Contains(toml, ".cni]\n    bin_dirs = [\"/opt/cni/bin\"]\n    conf_dir = \"/run/cni/net.d\"\n    use_internal_loopback = true\n"); got != want {
			t.Errorf("containerd %d: use_internal_loopback is %t in\n%s", major, got, toml)
		}
	}
}

func TestAddonsFillIn(t *testing.T) {
	t.Parallel()
	c := Default("/data", "/bin")
	c.Addons = manifest("kind: ConfigMap\nmetadata: {name: x}\ndata: {ip: $DNS_IP, image: '$COREDNS_IMAGE'}\n---\n# nothing\n---\nkind: Service\nmetadata: {name: web}\n")
	objects, err := c.readAddons()
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 2 || objects[1].GetName() != "web" {
		t.Fatalf("%v", objects[1])
	}
	data, _ := objects[0].Object["data"].(map[string]any)
	if data["ip"] != "10.96.0.10" || data["image"] != plan.CoreDNSImage {
		t.Errorf("%v", data)
	}
}

// TestWithNodes: nodes that stay keep what they are, new ones get the lowest numbers that are free.
func TestWithNodes(t *testing.T) {
	t.Parallel()
	c := Default("/data", "/bin")
	c.Nodes = []Node{{Number: 1, Labels: map[string]string{"a": "b"}}, {Number: 3}}
	var names []string
	with := func(n int) []Node {
		t.Helper()
		w, err := c.WithNodes(n)
		if err != nil {
			t.Fatal(err)
		}
		return w.Nodes
	}
	for _, n := range with(4) {
		names = append(names, n.Name()+n.Labels["a"])
	}
	if got := strings.Join(names, " "); got != "n1b n3 n2 n4" {
		t.Error(got)
	}
	if got := with(1); len(got) != 1 || got[0].Labels["a"] != "b" {
		t.Errorf("%+v", got)
	}
	for _, n := range []int{-1, 0, maxNodes + 1} {
		if _, err := c.WithNodes(n); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("not %d", n)) {
			t.Errorf("%d nodes: %v", n, err)
		}
	}
}
