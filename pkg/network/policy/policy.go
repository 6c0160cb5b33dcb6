package policy

import (
	"cmp"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	netutils "k8s.io/utils/net"

	"bonsai/pkg/network"
)

// policy is a NetworkPolicy as it is kept: whom it isolates, what it allows, and which groups and named ports that
// needs.
type policy struct {
	network.Policy
	selector labels.Selector
	groups   map[string]*group
	named    map[network.NamedPort]bool
}

// compile reads a policy.
//
// It runs once per change of a policy, on the goroutine of the policies' watch.
func compile(p *networkingv1.NetworkPolicy) *policy {
	out := &policy{selector: selector(&p.Spec.PodSelector), groups: map[string]*group{},
		named: map[network.NamedPort]bool{}}
	for _, t := range p.Spec.PolicyTypes {
		out.Affects[network.Ingress] = out.Affects[network.Ingress] || t == networkingv1.PolicyTypeIngress
		out.Affects[network.Egress] = out.Affects[network.Egress] || t == networkingv1.PolicyTypeEgress
	}
	if out.Affects[network.Ingress] {
		for _, r := range p.Spec.Ingress {
			out.rule(network.Ingress, p.Namespace, r.From, r.Ports)
		}
	}
	if out.Affects[network.Egress] {
		for _, r := range p.Spec.Egress {
			out.rule(network.Egress, p.Namespace, r.To, r.Ports)
		}
	}
	return out
}

// selector converts a label selector. An invalid one, which the API server does not store, selects nothing.
func selector(s *metav1.LabelSelector) labels.Selector {
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return out
}

// rule adds what a rule allows.
//
// An empty list of peers means any, and so does one of ports; a list whose entries match nothing means nothing.
func (p *policy) rule(d network.Direction, namespace string, peers []networkingv1.NetworkPolicyPeer,
	ports []networkingv1.NetworkPolicyPort) {
	r := network.PolicyRule{AnyPeer: len(peers) == 0, AnyPort: len(ports) == 0}
	for _, peer := range peers {
		if peer.IPBlock != nil {
			if b, ok := block(peer.IPBlock); ok {
				r.Blocks = append(r.Blocks, b)
			}
			continue
		}
		g := groupOf(namespace, &peer)
		p.groups[g.key] = g
		r.Groups = append(r.Groups, g.key)
	}
	for _, port := range ports {
		switch {
		case port.Port == nil:
			r.Ports = append(r.Ports, network.PortRange{Protocol: protocol(port.Protocol), Last: math.MaxUint16})
		case port.Port.Type == intstr.String:
			named := network.NamedPort{Protocol: protocol(port.Protocol), Name: port.Port.StrVal}
			p.named[named] = true
			r.Named = append(r.Named, named)
		default:
			last := port.Port.IntVal
			if port.EndPort != nil {
				last = *port.EndPort
			}
			r.Ports = append(r.Ports,
				network.PortRange{Protocol: protocol(port.Protocol), First: uint16(port.Port.IntVal),
					Last: uint16(last)})
		}
	}
	slices.Sort(r.Groups)
	r.Groups = slices.Compact(r.Groups)
	slices.SortFunc(r.Named, func(a, b network.NamedPort) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Name, b.Name))
	})
	r.Named = slices.Compact(r.Named)
	r.Ports = merged(r.Ports)
	p.Rules[d] = append(p.Rules[d], r)
}

// groupOf is the group of a peer that is no range of addresses, of a policy in namespace.
func groupOf(namespace string, peer *networkingv1.NetworkPolicyPeer) *group {
	g := &group{namespace: namespace, pods: labels.Everything()}
	if peer.PodSelector != nil {
		g.pods = selector(peer.PodSelector)
	}
	// A pod selector's text has neither of the separators.
	g.key = namespace + "|" + text(g.pods)
	if peer.NamespaceSelector != nil {
		g.namespace, g.namespaces = "", selector(peer.NamespaceSelector)
		g.key = "*" + text(g.namespaces) + "|" + text(g.pods)
	}
	return g
}

// text of a selector, the same for all that select the same way. That of one that selects nothing is like that of
// everything.
func text(s labels.Selector) string {
	if _, selects := s.Requirements(); !selects {
		return "!"
	}
	return s.String()
}

// block reads a range; its exceptions that lie in others of it are left out.
func block(b *networkingv1.IPBlock) (network.Block, bool) {
	whole, ok := prefix(b.CIDR)
	if !ok {
		return network.Block{}, false
	}
	var except []netip.Prefix
	for _, e := range b.Except {
		if x, ok := prefix(e); ok {
			except = append(except, x)
		}
	}
	return network.Block{Range: whole, Except: outermost(except)}, true
}

// prefix reads a range as loosely as the API server did when it was stricter about nothing.
func prefix(text string) (netip.Prefix, bool) {
	_, n, err := netutils.ParseCIDRSloppy(text)
	if err != nil {
		return netip.Prefix{}, false
	}
	a, ok := netip.AddrFromSlice(n.IP)
	if !ok {
		return netip.Prefix{}, false
	}
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(a, bits), true
}

// outermost leaves out prefixes that lie in others.
func outermost(all []netip.Prefix) []netip.Prefix {
	// by family, length, address: what contains comes before what is contained
	slices.SortFunc(all, netip.Prefix.Compare)
	var out []netip.Prefix
	for _, p := range all {
		if !slices.ContainsFunc(out, func(o netip.Prefix) bool { return o.Overlaps(p) }) {
			out = append(out, p)
		}
	}
	return out
}

// merged joins ranges that overlap or touch, which a set of the kernel's must not have.
func merged(all []network.PortRange) []network.PortRange {
	slices.SortFunc(all, func(a, b network.PortRange) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.First, b.First))
	})
	var out []network.PortRange
	for _, r := range all {
		if n := len(out); n > 0 && out[n-1].Protocol == r.Protocol && int(r.First) <= int(out[n-1].Last)+1 {
			out[n-1].Last = max(out[n-1].Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return out
}

// setPolicyLocked takes in a policy.
//
// The new groups are used before the old ones are released, so that a group which both need is not emptied and filled
// again.
func (s *State) setPolicyLocked(name network.Name, p *policy) {
	ns := s.namespaceLocked(name.Namespace)
	old := ns.policies[name.Name]
	ns.policies[name.Name] = p
	for _, key := range slices.Sorted(maps.Keys(p.groups)) {
		s.useGroupLocked(p.groups[key])
	}
	for n := range p.named {
		s.nameLocked(n, +1)
	}
	if old != nil {
		s.releaseLocked(old)
	}
	s.policyChangedLocked(name, ns)
	select {
	case <-s.needed:
	default:
		close(s.needed)
	}
}

func (s *State) dropPolicyLocked(name network.Name) {
	ns := s.namespaces[name.Namespace]
	if ns == nil || ns.policies[name.Name] == nil {
		return
	}
	s.releaseLocked(ns.policies[name.Name])
	delete(ns.policies, name.Name)
	s.policyChangedLocked(name, ns)
	s.forgetLocked(name.Namespace)
}

// releaseLocked gives back what a policy needed.
func (s *State) releaseLocked(p *policy) {
	for key := range p.groups {
		s.leaveGroupLocked(key)
	}
	for n := range p.named {
		s.nameLocked(n, -1)
	}
}

// policyChangedLocked has a policy told, and the pods of the node that it may isolate.
func (s *State) policyChangedLocked(name network.Name, ns *namespace) {
	s.changedPolicies[name] = true
	for _, p := range ns.pods {
		if p.Local {
			s.touchLocked(p)
		}
	}
	s.changedLocked()
}

// nameLocked counts the policies that name a port.
func (s *State) nameLocked(n network.NamedPort, by int) {
	had := s.named[n] > 0
	if s.named[n] += by; s.named[n] == 0 {
		delete(s.named, n)
	}
	if had == (s.named[n] > 0) {
		return
	}
	s.changedNamed[n] = true
	for _, p := range s.pods {
		if slices.ContainsFunc(p.Ports, func(port network.PodPort) bool { return port.NamedPort == n }) {
			s.touchLocked(p)
		}
	}
}

// isolationKey names the isolation by policies, "" if there are none.
func isolationKey(d network.Direction, policies []network.Name) string {
	if len(policies) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(strconv.Itoa(int(d)))
	for _, p := range policies {
		b.WriteString(" " + p.String())
	}
	return b.String()
}

func compareNames(a, b network.Name) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
