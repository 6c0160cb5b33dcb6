package network

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/cluster/plan"
)

// TestBalancerSubnet: the range is in the node network, and neither the host nor a node is in it.
func TestBalancerSubnet(t *testing.T) {
	t.Parallel()
	for subnet, want := range map[string]string{"10.77.0.0/24": "10.77.0.192/26", "10.77.0.0/27": "10.77.0.24/29",
		"10.0.0.0/8": "10.192.0.0/10", "10.77.4.0/22": "10.77.7.0/24"} {
		c := plan.Config{NodeSubnet: netip.MustParsePrefix(subnet)}
		got := c.Networks().Balancers()[0]
		if got.String() != want {
			t.Errorf("%s: %s", subnet, got)
		}
		for n := 1; n <= 9; n++ {
			if got.Contains(c.NodeIP(plan.Node{Number: n})) || got.Contains(c.Networks().HostIP()) {
				t.Errorf("%s: %s has a node", subnet, got)
			}
		}
	}
}

func TestBalancerGateways(t *testing.T) {
	t.Parallel()
	c := plan.Config{NodeSubnet: netip.MustParsePrefix("10.77.0.0/24")}
	node := func(address string, status corev1.ConditionStatus, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}}
	}
	got := BalancerGateways(c, []*corev1.Node{
		node("10.77.0.12", corev1.ConditionTrue, nil), node("10.77.0.11", corev1.ConditionTrue, nil),
		node("10.77.0.13", corev1.ConditionUnknown, nil),
		node("10.77.0.14", corev1.ConditionTrue, map[string]string{corev1.LabelNodeExcludeBalancers: ""}),
		node("192.0.2.1", corev1.ConditionTrue, nil),
		node(c.Networks().HostIP().String(), corev1.ConditionTrue, nil), node("", corev1.ConditionTrue, nil),
	})
	if fmt.Sprint(got) != "[10.77.0.11 10.77.0.12]" {
		t.Errorf("%v", got)
	}
}
