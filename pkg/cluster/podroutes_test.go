package cluster

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
	c := plan.Config{NodeSubnet: netip.MustParsePrefix("10.77.0.0/24"), PodSubnet: netip.MustParsePrefix("10.244.0.0/16")}
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
		node := &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: n.cidr}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.address}}}}
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
