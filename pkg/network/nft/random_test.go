package nft_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/pkg/network/policy"
)

// lot draws objects of a small world, in which much matches.
type lot struct{ *rand.Rand }

func oneOf[T any](l lot, all ...T) T { return all[l.IntN(len(all))] }

func (l lot) labels() map[string]string {
	out := map[string]string{}
	for _, k := range []string{"a", "b"} {
		if v := oneOf(l, "", "x", "y"); v != "" {
			out[k] = v
		}
	}
	return out
}

func (l lot) selector() *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	switch l.IntN(4) {
	case 0:
	case 1:
		s.MatchLabels = map[string]string{oneOf(l, "a", "b"): oneOf(l, "x", "y")}
	case 2:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: oneOf(l, "a", "b"),
				Operator: oneOf(l, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}}
	default:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: oneOf(l, "a", "b"), Operator: oneOf(l, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn),
				Values: []string{"x", "z"}}}
	}
	return s
}

func (l lot) protocol() corev1.Protocol {
	return oneOf(l, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
}

func (l lot) pod(name string, number int) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: oneOf(l, "one", "two", "three"), Name: name, Labels: l.labels()},
		Spec: corev1.PodSpec{NodeName: oneOf(l, "here", "here", "there"), HostNetwork: l.IntN(8) == 0,
			Containers: []corev1.Container{{}}},
		Status: corev1.PodStatus{
			Phase: oneOf(l, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodFailed)},
	}
	for _, n := range []string{"http", "dns"} {
		if l.IntN(2) == 0 {
			p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports,
				corev1.ContainerPort{Name: n, Protocol: l.protocol(), ContainerPort: int32(oneOf(l, 80, 81, 82))})
		}
	}
	if l.IntN(6) > 0 {
		p.Status.PodIPs = []corev1.PodIP{{IP: fmt.Sprintf("10.0.%d.%d", number%2, number)},
			{IP: fmt.Sprintf("fd00:%d::%d", number%2, number)}}
	}
	return p
}

func (l lot) peers() []networkingv1.NetworkPolicyPeer {
	var out []networkingv1.NetworkPolicyPeer
	for range l.IntN(3) {
		switch l.IntN(5) {
		case 0:
			out = append(out, networkingv1.NetworkPolicyPeer{PodSelector: l.selector()})
		case 1:
			out = append(out, networkingv1.NetworkPolicyPeer{NamespaceSelector: l.selector()})
		case 2:
			out = append(out, networkingv1.NetworkPolicyPeer{NamespaceSelector: l.selector(),
				PodSelector: l.selector()})
		case 3:
			out = append(out, networkingv1.NetworkPolicyPeer{
				IPBlock: &networkingv1.IPBlock{CIDR: oneOf(l, "10.0.0.0/16", "0.0.0.0/0", "192.0.2.0/24"),
					Except: oneOf(l, nil, []string{"10.0.1.0/24"},
						[]string{"10.0.0.0/24", "10.0.0.4/30", "10.0.0.0/24"})}})
		default:
			out = append(out, networkingv1.NetworkPolicyPeer{
				IPBlock: &networkingv1.IPBlock{CIDR: oneOf(l, "fd00::/16", "::/0"),
					Except: oneOf(l, nil, []string{"fd00:1::/32"})}})
		}
	}
	return out
}

func (l lot) ports() []networkingv1.NetworkPolicyPort {
	var out []networkingv1.NetworkPolicyPort
	for range l.IntN(4) {
		p := networkingv1.NetworkPolicyPort{Protocol: new(l.protocol())}
		switch l.IntN(5) {
		case 0:
		case 1:
			p.Port = new(intstr.FromString(oneOf(l, "http", "dns", "nobody")))
		case 2:
			p.Port, p.EndPort = new(intstr.FromInt32(oneOf[int32](l, 79, 80, 81))), new(oneOf[int32](l, 81, 82))
		default:
			p.Port = new(intstr.FromInt32(oneOf[int32](l, 80, 81, 82)))
		}
		out = append(out, p)
	}
	return out
}

func (l lot) policy(name string) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: oneOf(l, "one", "two", "three"), Name: name}}
	p.Spec.PodSelector = *l.selector()
	p.Spec.PolicyTypes = oneOf(l, []networkingv1.PolicyType{"Ingress"}, []networkingv1.PolicyType{"Egress"},
		[]networkingv1.PolicyType{"Egress", "Ingress"})
	for range l.IntN(3) {
		p.Spec.Ingress = append(p.Spec.Ingress,
			networkingv1.NetworkPolicyIngressRule{From: l.peers(), Ports: l.ports()})
	}
	for range l.IntN(3) {
		p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{To: l.peers(), Ports: l.ports()})
	}
	return p
}

// step changes one thing, in the API and in what the node is told.
func (l lot) step(c *cluster, s *policy.State) {
	switch n := l.IntN(9); l.IntN(5) {
	case 0:
		ns := &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: oneOf(l, "one", "two", "three"), Labels: l.labels()}}
		if l.IntN(4) == 0 {
			delete(c.namespaces, ns.Name)
			s.Namespaces().Delete(ns)
			return
		}
		c.namespaces[ns.Name] = ns
		s.Namespaces().Set(ns)
	case 1, 2:
		name := fmt.Sprintf("p%d", n)
		if old := c.pods[name]; old != nil {
			delete(c.pods, name)
			if l.IntN(3) == 0 {
				s.Pods().Delete(old)
				return
			}
			p := l.pod(name, n)
			if p.Namespace != old.Namespace {
				s.Pods().Delete(old)
			}
			c.pods[name] = p
			s.Pods().Set(p)
			return
		}
		c.pods[name] = l.pod(name, n)
		s.Pods().Set(c.pods[name])
	default:
		name := fmt.Sprintf("n%d", n%5)
		if old := c.policies[name]; old != nil {
			delete(c.policies, name)
			p := l.policy(name)
			if l.IntN(3) == 0 || p.Namespace != old.Namespace {
				s.Policies().Delete(old)
				return
			}
			c.policies[name] = p
			s.Policies().Set(p)
			return
		}
		c.policies[name] = l.policy(name)
		s.Policies().Set(c.policies[name])
	}
}

func values[K comparable, V any](m map[K]V) []V {
	var out []V
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

func (l lot) attempt() attempt {
	a := attempt{protocol: l.protocol(), port: oneOf(l, 79, 80, 81, 82, 83)}
	n, m := l.IntN(9), l.IntN(9)
	if l.IntN(2) == 0 {
		a.from, a.to = netip.AddrFrom4([4]byte{10, 0, byte(n % 2), byte(n)}),
			netip.AddrFrom4([4]byte{10, 0, byte(m % 2), byte(m)})
		outside := netip.MustParseAddr("192.0.2.1")
		a.from, a.to = oneOf(l, a.from, a.from, outside), oneOf(l, a.to, a.to, outside)
		return a
	}
	a.from, a.to = netip.MustParseAddr(fmt.Sprintf("fd00:%d::%d", n%2, n)),
		netip.MustParseAddr(fmt.Sprintf("fd00:%d::%d", m%2, m))
	return a
}
