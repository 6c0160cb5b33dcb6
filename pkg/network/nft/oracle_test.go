package nft_test

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/pkg/network/policy"
)

// cluster is what the API has, as the oracle reads it.
type cluster struct {
	namespaces map[string]*corev1.Namespace
	pods       map[string]*corev1.Pod
	policies   map[string]*networkingv1.NetworkPolicy
}

// attempt is a connection.
type attempt struct {
	from, to netip.Addr
	protocol corev1.Protocol
	port     int
}

func (a attempt) String() string {
	return fmt.Sprintf("%s → %s %s/%d", a.from, a.to, a.protocol, a.port)
}

// podAt is the pod that has an address: none of the host's network, none that has ended.
func (c *cluster) podAt(a netip.Addr) *corev1.Pod {
	for _, p := range c.pods {
		if p.Spec.HostNetwork || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
			continue
		}
		for _, ip := range p.Status.PodIPs {
			if netip.MustParseAddr(ip.IP) == a {
				return p
			}
		}
	}
	return nil
}

// allowed is the API's documentation in code: what the node "here" lets through.
func (c *cluster) allowed(a attempt) bool {
	from, to := c.podAt(a.from), c.podAt(a.to)
	if a.from == a.to {
		return true
	}
	if from != nil && from.Spec.NodeName == "here" && !c.consents(from, networkingv1.PolicyTypeEgress, a, a.to, to) {
		return false
	}
	return to == nil || to.Spec.NodeName != "here" || c.consents(to, networkingv1.PolicyTypeIngress, a, a.from, from)
}

// consents reports whether pod's policies of a type allow the connection with the peer, which is a pod or not.
func (c *cluster) consents(pod *corev1.Pod, t networkingv1.PolicyType, a attempt, peerAddr netip.Addr,
	peer *corev1.Pod) bool {
	isolated := false
	for _, p := range c.policies {
		if p.Namespace != pod.Namespace || !slices.Contains(p.Spec.PolicyTypes, t) ||
			!selects(&p.Spec.PodSelector, pod.Labels) {
			continue
		}
		isolated = true
		if t == networkingv1.PolicyTypeIngress {
			for _, r := range p.Spec.Ingress {
				if c.peers(r.From, p.Namespace, peerAddr, peer) && ports(r.Ports, a, pod) {
					return true
				}
			}
			continue
		}
		for _, r := range p.Spec.Egress {
			if c.peers(r.To, p.Namespace, peerAddr, peer) && ports(r.Ports, a, peer) {
				return true
			}
		}
	}
	return !isolated
}

func (c *cluster) peers(all []networkingv1.NetworkPolicyPeer, namespace string, addr netip.Addr, pod *corev1.Pod) bool {
	for _, p := range all {
		if b := p.IPBlock; b != nil {
			in := netip.MustParsePrefix(b.CIDR).Contains(addr)
			for _, e := range b.Except {
				in = in && !netip.MustParsePrefix(e).Contains(addr)
			}
			if in {
				return true
			}
			continue
		}
		if pod == nil {
			continue
		}
		there := pod.Namespace == namespace
		if p.NamespaceSelector != nil {
			ns := c.namespaces[pod.Namespace]
			there = ns != nil && selects(p.NamespaceSelector, ns.Labels)
		}
		if there && (p.PodSelector == nil || selects(p.PodSelector, pod.Labels)) {
			return true
		}
	}
	return len(all) == 0
}

// ports: a named one is the number that the pod which is connected to gives the name.
func ports(all []networkingv1.NetworkPolicyPort, a attempt, to *corev1.Pod) bool {
	for _, p := range all {
		if *p.Protocol != a.protocol {
			continue
		}
		switch {
		case p.Port == nil:
			return true
		case p.Port.Type == intstr.String:
			if to != nil && slices.ContainsFunc(to.Spec.Containers[0].Ports, func(c corev1.ContainerPort) bool {
				return c.Name == p.Port.StrVal && c.Protocol == a.protocol && int(c.ContainerPort) == a.port
			}) {
				return true
			}
		case p.EndPort != nil && a.port >= p.Port.IntValue() && a.port <= int(*p.EndPort), a.port == p.Port.IntValue():
			return true
		}
	}
	return len(all) == 0
}

func selects(s *metav1.LabelSelector, l map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		panic(err)
	}
	return selector.Matches(labels.Set(l))
}

// tell gives a new state all that the API has.
func (c *cluster) tell(s *policy.State) {
	s.Policies().Replace(values(c.policies))
	s.Pods().Replace(values(c.pods))
	s.Namespaces().Replace(values(c.namespaces))
}
