package network

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/cluster/plan"
)

// TestPodNetwork: a Node object leads the host's packets for its pods to it, and nothing else anywhere.
func TestPodNetwork(t *testing.T) {
	t.Parallel()
	c := plan.Config{NodeSubnet: netip.MustParsePrefix("10.77.0.0/24"),
		PodSubnet: netip.MustParsePrefix("10.244.0.0/16")}
	for _, n := range []struct {
		cidr, address string
		want          bool
	}{
		{"10.244.1.0/24", "10.77.0.3", true},
		{"", "10.77.0.3", false},
		{"10.244.1.0/24", "", false},
		{"0.0.0.0/1", "10.77.0.3", false},
		{"10.244.0.0/8", "10.77.0.3", false},
		{"10.244.0.0/16", "10.77.0.3", false},
		{"192.0.2.0/24", "10.77.0.3", false},
		{"10.77.0.0/24", "10.77.0.3", false},
		{"10.244.1.0/24", "192.0.2.1", false},
		{"10.244.1.0/24", "127.0.0.1", false},
		{"10.244.1.0/24", c.Networks().HostIP().String(), false},
		{"10.244.1.0/24", "n1", false},
		{"fd00::/64", "10.77.0.3", false},
	} {
		node := &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: n.cidr},
			Status: corev1.NodeStatus{
				Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.address}}}}
		got := fmt.Sprint(podNetworks(c, node))
		want := "map[]"
		if n.want {
			want = fmt.Sprintf("map[%s:%s]", n.cidr, n.address)
		}
		if got != want {
			t.Errorf("%+v: %s", n, got)
		}
	}
}

// TestPodNetworksOfBothFamilies: each leads through the node's address of its family.
func TestPodNetworksOfBothFamilies(t *testing.T) {
	t.Parallel()
	c := plan.Default("/data", "/bin")
	c.IPFamily = plan.Dual
	node := &corev1.Node{Spec: corev1.NodeSpec{
		PodCIDRs: []string{"10.244.1.0/24", "fd00:b05b:af4:0:1::/80", "fd00:1::/80"}}}
	for _, a := range []string{"10.77.0.11", "fd00:b05a:a4d::b"} {
		node.Status.Addresses = append(node.Status.Addresses,
			corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	if got := fmt.Sprint(podNetworks(c,
		node)); got != "map[10.244.1.0/24:10.77.0.11 fd00:b05b:af4:0:1::/80:fd00:b05a:a4d::b]" {
		t.Error(got)
	}
}

// TestRoutesToJoinedNodes: pods of a node on another machine are reached by its address, but by none that is the
// cluster's.
func TestRoutesToJoinedNodes(t *testing.T) {
	t.Parallel()
	pods := netip.MustParsePrefix("10.244.7.0/24")
	joinable := plan.Default("/data", "/bin")
	joinable.AdvertiseAddress = netip.MustParseAddr("192.0.2.1")
	for address, want := range map[string]bool{"198.51.100.7": true, "10.77.0.12": true, "10.77.0.1": false,
		"10.244.1.1": false, "10.96.0.1": false} {
		node := &corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: []string{pods.String()}},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}}}
		if got := podNetworks(joinable, node)[pods]; (got.String() == address) != want {
			t.Errorf("%s: %v", address, got)
		}
		if got, ok := podNetworks(plan.Default("/data", "/bin"), node)[pods]; ok != (address == "10.77.0.12") {
			t.Errorf("%s, in a cluster that nobody joins: %v", address, got)
		}
	}
}
