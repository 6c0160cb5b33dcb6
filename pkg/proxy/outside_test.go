package proxy

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// outsideOf are the addresses outside the cluster that Take reports for each service.
func outsideOf(s *State) map[string][]string {
	out := map[string][]string{}
	for name, ports := range s.Take().Services {
		out[name.Name] = nil
		for _, p := range ports {
			for _, a := range append(append([]netip.Addr{}, p.ExternalIPs...), p.LoadBalancerIPs...) {
				out[name.Name] = append(out[name.Name], a.String())
			}
		}
	}
	return out
}

func wanting(name, clusterIP string, external []string, balancer ...string) *corev1.Service {
	s := service(name)
	s.Spec.ClusterIP, s.Spec.ExternalIPs, s.Spec.Type = clusterIP, external, corev1.ServiceTypeLoadBalancer
	for _, ip := range balancer {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
	return s
}

// TestOutsideAddresses: no service takes the traffic to another's cluster IP, to an address of the service ranges, or
// to a node's own loopback and link by naming it as an external or load balancer address (CVE-2020-8554).
func TestOutsideAddresses(t *testing.T) {
	t.Parallel()
	s := NewState("here")
	ranges := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16"}}}
	s.ServiceCIDRs().Set(ranges)
	expect := func(step string, want map[string][]string) {
		t.Helper()
		if diff := cmp.Diff(want, outsideOf(s)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", step, diff)
		}
	}
	const victim = "172.30.0.1" // of a range that this proxy was not told of
	s.Services().Set(wanting("thief", "10.96.0.9",
		[]string{"192.0.2.1", "10.96.0.10", "10.96.0.9", victim, "0.0.0.0", "169.254.169.254"},
		"192.0.2.2", "127.0.0.1", "10.96.1.1", victim, "224.0.0.1"))
	expect("before the victim", map[string][]string{"thief": {"192.0.2.1", victim, "192.0.2.2", victim}})
	s.Services().Set(wanting("victim", victim, nil))
	expect("the victim comes", map[string][]string{"thief": {"192.0.2.1", "192.0.2.2"}, "victim": nil})
	s.Services().Set(wanting("victim", "172.30.0.2", nil))
	expect("the victim gets another address",
		map[string][]string{"thief": {"192.0.2.1", victim, "192.0.2.2", victim}, "victim": nil})
	s.Services().Set(wanting("victim", victim, nil))
	s.Take()
	s.Services().Replace([]*corev1.Service{wanting("thief", "10.96.0.9", []string{"192.0.2.1", victim})})
	expect("the victim goes", map[string][]string{"thief": {"192.0.2.1", victim}, "victim": nil})
	s.ServiceCIDRs().Set(&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"172.30.0.0/24"}}})
	expect("a range of the address comes", map[string][]string{"thief": {"192.0.2.1"}})
	s.ServiceCIDRs().Replace([]*networkingv1.ServiceCIDR{ranges})
	expect("the range goes", map[string][]string{"thief": {"192.0.2.1", victim}})
	s.Services().Delete(service("thief"))
	if len(s.outside.owners)+len(s.outside.wanted) > 0 {
		t.Errorf("left over: %v %v", s.outside.owners, s.outside.wanted)
	}
}

// TestAddressesOfPods: no service takes the traffic to a pod. In ipvs mode it would close all ports of the pod to all
// nodes.
func TestAddressesOfPods(t *testing.T) {
	t.Parallel()
	s := NewState("here")
	s.Protect(nil, []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("2001:db8::/64")})
	s.Services().Set(wanting("thief", "10.96.0.9", []string{"10.244.1.2", "2001:db8::2", "192.0.2.2"}, "10.244.0.1"))
	if diff := cmp.Diff(map[string][]string{"thief": {"192.0.2.2"}}, outsideOf(s)); diff != "" {
		t.Error(diff)
	}
	if u := s.Take(); len(u.ServiceCIDRs) != 0 {
		t.Errorf("the pods' ranges count for cluster IPs: %v", u.ServiceCIDRs)
	}
}

// TestNeededAddresses: no service takes the traffic to an API server, to a node, or to another address that the node
// needs to be part of the cluster: the proxy itself would not hear of the service's end.
func TestNeededAddresses(t *testing.T) {
	t.Parallel()
	s := NewState("here")
	s.Protect([]netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil)
	servers := func(ips ...string) *discoveryv1.EndpointSlice {
		sl := slice("kubernetes", "kubernetes", ips...)
		sl.Namespace = "default"
		return sl
	}
	node := func(ips ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
		for i, ip := range ips {
			kind := [...]corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP, corev1.NodeHostName}[i]
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: kind, Address: ip})
		}
		return n
	}
	expect := func(step string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, outsideOf(s)["thief"]); diff != "" {
			t.Errorf("%s (-want +got)\n%s", step, diff)
		}
	}
	s.Services().Set(wanting("thief", "10.96.0.9", []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, "192.0.2.4",
		"192.0.2.5"))
	expect("what was protected first", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5")
	s.Slices().Set(servers("192.0.2.2"))
	expect("an API server comes", "192.0.2.3", "192.0.2.4", "192.0.2.5")
	s.Nodes().Set(node("192.0.2.3", "192.0.2.4", "other"))
	expect("a node comes", "192.0.2.5")
	s.Nodes().Set(node("192.0.2.5", "192.0.2.4", "other"))
	expect("the node gets another address", "192.0.2.3")
	s.Slices().Set(servers("192.0.2.3"))
	expect("another API server comes", "192.0.2.2")
	s.Nodes().Delete(node())
	expect("the node goes", "192.0.2.2", "192.0.2.4", "192.0.2.5")
	s.Slices().Delete(servers())
	expect("the API servers go", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5")
	fake := servers("192.0.2.4")
	fake.Name = "kubernetes-2"
	s.Slices().Set(fake)
	s.Services().Set(wanting("thief", "10.96.0.9", nil, "192.0.2.1", "192.0.2.4"))
	expect("a slice that the API servers did not write protects nothing", "192.0.2.4")
	s.Services().Delete(service("thief"))
	if len(s.outside.owners) != 1 || len(s.outside.wanted) > 0 {
		t.Errorf("left over: %v %v", s.outside.owners, s.outside.wanted)
	}
}
