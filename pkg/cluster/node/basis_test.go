package node

import (
	"log/slog"
	"testing"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestBasis: a process starts again when its flags, its configuration or the authority are others, and not when the
// labels and taints are with which a new Node registers.
func TestBasis(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	l := c.Layout()
	write := func(path, content string) {
		t.Helper()
		if err := host.WriteFile(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	basis := func(c plan.Config) map[string]string {
		n, out := Of(c, c.Nodes[0]), map[string]string{}
		for _, p := range n.Processes(slog.New(slog.DiscardHandler)) {
			out[p.Name] = n.basisOf(p)
		}
		return out
	}
	n := c.Nodes[0].Name()
	write(l.Node(n, "etc", "kubelet.yaml"), "a")
	write(l.Node(n, "etc", "containerd.toml"), "a")
	write(l.PKI("ca.crt"), "a")
	last := basis(c)
	for _, step := range []struct {
		name   string
		change func()
		want   []string
	}{
		{"nothing", func() {}, nil},
		{"labels and taints", func() {
			c.Nodes[0].Labels, c.Nodes[0].Taints = map[string]string{"a": "b"}, []string{"a=b:NoSchedule"}
		}, nil},
		{"a flag", func() {
			c.ComponentFlags = map[string]map[string]string{"kube-proxy": {"proxy-mode": "iptables"}}
		}, []string{"kube-proxy"}},
		{"the kubelet's file", func() { write(l.Node(n, "etc", "kubelet.yaml"), "b") }, []string{"kubelet"}},
		{"containerd's file", func() { write(l.Node(n, "etc", "containerd.toml"), "b") }, []string{"containerd"}},
		{"the authority", func() { write(l.PKI("ca.crt"), "b") }, []string{"kubelet", "kube-proxy", "bonsai-network"}},
	} {
		step.change()
		now, changed := basis(c), 0
		for _, name := range step.want {
			if now[name] == last[name] {
				t.Errorf("%s: %s does not start again", step.name, name)
			}
		}
		for name := range now {
			if now[name] != last[name] {
				changed++
			}
		}
		if changed != len(step.want) {
			t.Errorf("%s: %d processes start again, not %v", step.name, changed, step.want)
		}
		last = now
	}
}
