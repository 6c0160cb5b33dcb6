package network

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRoutes(t *testing.T) {
	t.Parallel()
	s := NewState("here", []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")})
	node := func(name string, cidrs []string, ips ...string) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDRs: cidrs}}
		for _, ip := range ips {
			n.Status.Addresses = append(n.Status.Addresses,
				corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
		}
		s.Nodes().Set(n)
	}
	node("here", []string{"10.244.1.0/24"}, "192.0.2.1")
	node("there", []string{"10.244.2.0/24", "fd00:2::/64"}, "192.0.2.2", "2001:db8::2")
	node("four", []string{"10.244.3.0/24", "fd00:3::/64"}, "192.0.2.3")
	node("young", nil, "192.0.2.4")
	// They name what is not the pods'; of the second family the range is not known.
	node("greedy", []string{"0.0.0.0/1", "10.0.0.0/8"}, "192.0.2.5")
	node("foreign", []string{"198.51.100.0/24"}, "192.0.2.6")
	got := s.Take().Routes
	want := map[netip.Prefix]netip.Addr{
		netip.MustParsePrefix("10.244.2.0/24"): netip.MustParseAddr("192.0.2.2"),
		netip.MustParsePrefix("fd00:2::/64"):   netip.MustParseAddr("2001:db8::2"),
		netip.MustParsePrefix("10.244.3.0/24"): netip.MustParseAddr("192.0.2.3"),
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for cidr, gw := range want {
		if got[cidr] != gw {
			t.Errorf("%s: got %s, want %s", cidr, got[cidr], gw)
		}
	}
}

// TestHeartbeat: a Node that says nothing new of the network wakes nobody.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	s := NewState("here", nil)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "here"}, Spec: corev1.NodeSpec{PodCIDR: "10.244.1.0/24"}}
	if s.Ready() {
		t.Error("ready before the nodes are listed")
	}
	s.Nodes().Replace([]*corev1.Node{node})
	if got := s.Take().PodCIDRs; !s.Ready() || len(s.wake) != 1 || len(got) != 1 || got[0].String() != "10.244.1.0/24" {
		t.Errorf("ready %v, changes %d, podCIDRs %v", s.Ready(), len(s.wake), got)
	}
	<-s.Changed()
	node = node.DeepCopy()
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if s.Nodes().Set(node); len(s.wake) != 0 {
		t.Error("a heartbeat is a change")
	}
	if s.Nodes().Delete(node); len(s.wake) != 1 || len(s.PodCIDRs()) != 0 {
		t.Error("the node's end is none")
	}
}
