package cluster

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/network/cni"
)

// TestStockFlags: every component is started with flags that the real one of Kubernetes v1.37.2 has, so that its binary
// runs in place of ours. testdata/flags has their names and types, one per line, in the order of the names, as `--help`
// tells them.
func TestStockFlags(t *testing.T) {
	t.Parallel()
	c := plan.Default("/data", "/bin")
	c.Nodes, c.FeatureGates = plan.NodesUpTo(1), map[string]bool{"AllAlpha": false}
	c.AdvertiseAddress = netip.MustParseAddr("192.0.2.1")
	c.Nodes[0].Labels, c.Nodes[0].Taints = map[string]string{"a": "b"}, []string{"c=d:NoSchedule"}
	of := node.Of(c, c.Nodes[0])
	var stock []string
	joined := of
	joined.Joined = true
	log := slog.New(slog.DiscardHandler)
	for _, p := range slices.Concat(everyProcess(c), of.Processes(log), joined.Processes(log)) {
		data, err := os.ReadFile(filepath.Join("testdata", "flags", p.Name+".txt"))
		if os.IsNotExist(err) {
			continue // etcd, containerd and the pod network's agent are not Kubernetes'
		}
		if err != nil {
			t.Fatal(err)
		}
		stock = append(stock, p.Name)
		var known []string
		for line := range strings.Lines(string(data)) {
			name, _, _ := strings.Cut(line, " ")
			known = append(known, name)
		}
		for _, arg := range p.Argv[1:] {
			name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			if _, found := slices.BinarySearch(known, name); !found {
				t.Errorf("%s is given %s, which Kubernetes' own does not know", p.Name, arg)
			}
		}
	}
	if want := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy",
		"kubelet", "kube-proxy"}; !slices.Equal(stock, want) {
		t.Errorf("looked at %v, want %v", stock, want)
	}
}

// TestPodBridge: kube-proxy knows a node's pods by the bridge that the pod network's agent plugs them into.
func TestPodBridge(t *testing.T) {
	t.Parallel()
	list, err := cni.Render([]netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")}, "ipam")
	if err != nil || !strings.Contains(string(list), `"bridge": "`+plan.PodBridge+`"`) {
		t.Errorf("%s is not in the network list %s, %v", plan.PodBridge, list, err)
	}
	c := plan.Default("/data", "/bin")
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	of := node.Of(c, c.Nodes[0])
	for _, p := range of.Processes(slog.New(slog.DiscardHandler)) {
		if p.Name == "kube-proxy" &&
			!(slices.Contains(p.Argv, "--detect-local-mode=BridgeInterface") &&
				slices.Contains(p.Argv, "--pod-bridge-interface="+plan.PodBridge)) {
			t.Errorf("kube-proxy is given %q", p.Argv)
		}
	}
}
