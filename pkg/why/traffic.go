package why

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Traffic is what one end sends to a port of another: what NetworkPolicies decide on, after a Service's address was
// translated to that of its endpoint.
type Traffic struct {
	From, To End
	// Port is that of the other end, 0 if nobody knows it: every rule's ports have it then.
	Port int32
	// Protocol is TCP by default.
	Protocol corev1.Protocol
	// Service and ServicePort are where a client sends it, if that is a Service. Policies do not count them, and people
	// who write policies do.
	Service     []netip.Addr
	ServicePort int32
}

// End is one end of traffic: a pod, or an address that is no pod's.
type End struct {
	Pod *corev1.Pod
	// Namespace are the labels of the pod's namespace; nil if nobody knows them: all that selectors want is there then,
	// except the namespace's name.
	Namespace labels.Set
	// Address is that of an end that is no pod.
	Address netip.Addr
}

// Denial is why the policies of one end keep traffic away.
type Denial struct {
	// Direction is Egress for the policies of the sender, and Ingress for those of the receiver.
	Direction networkingv1.PolicyType
	// Policies are all that select the end's pod in this direction, and Nearest is that whose rule comes closest.
	Policies []*networkingv1.NetworkPolicy
	Nearest  *networkingv1.NetworkPolicy
	// Text is what the nearest rule allows, and why that is something else, with the policy as its subject: "admits
	// pods with app=front, and pod web has app=web". Field is where the policy says so, and Value what it says.
	Text, Field, Value string
}

// maxParts bounds the peers and ports of rules that are looked at for one end of traffic: a policy can have a megabyte.
const maxParts = 10_000

// Denials returns the ends whose policies keep the traffic away, the sender first; none if it is let through. policies
// may have those of any namespaces. Whatever is not known counts as allowed: pods without an address, namespaces
// without labels, and more rules than are looked at.
func (t *Traffic) Denials(policies []*networkingv1.NetworkPolicy) (denials []Denial) {
	from, to := t.From.Pod, t.To.Pod
	switch {
	case from == nil || from.Spec.HostNetwork: // a node, whose addresses are not known here
		return nil
	case to != nil && to.Namespace == from.Namespace && to.Name == from.Name:
		return nil
	case slices.ContainsFunc(hostAddresses(from), func(a netip.Addr) bool {
		return slices.Contains(t.To.addresses(), a)
	}):
		return nil // a pod always reaches its own node
	}
	for _, direction := range []networkingv1.PolicyType{networkingv1.PolicyTypeEgress, networkingv1.PolicyTypeIngress} {
		if d, ok := t.denied(policies, direction); ok {
			denials = append(denials, d)
		}
	}
	return denials
}

// denied holds the traffic against the policies of one end.
func (t *Traffic) denied(policies []*networkingv1.NetworkPolicy, direction networkingv1.PolicyType) (d Denial,
	ok bool) {
	self, other := t.From, t.To
	if direction == networkingv1.PolicyTypeIngress {
		self, other = t.To, t.From
	}
	if self.Pod == nil || self.Pod.Spec.HostNetwork {
		return d, false // no policy selects it
	}
	d.Direction = direction
	best, parts := -1, 0
	for _, p := range policies {
		if p.Namespace != self.Pod.Namespace || !restricts(p, direction) ||
			!fits(&p.Spec.PodSelector, self.Pod.Labels) {
			continue
		}
		d.Policies = append(d.Policies, p)
		rules := rulesOf(p, direction)
		if len(rules) == 0 && best < 0 {
			best, d.Nearest, d.Field, d.Value = 0, p, "."+rulesField(direction), "no rule"
			d.Text = "allows nothing"
			if direction == networkingv1.PolicyTypeIngress {
				d.Text = "admits nobody"
			}
		}
		for i, r := range rules {
			if parts += len(r.peers) + len(r.ports); parts > maxParts {
				return d, false
			}
			m := t.miss(p, r, other, direction)
			if m.rank == allowed {
				return d, false // policies add up
			}
			if m.rank > best {
				best, d.Nearest, d.Text, d.Value = m.rank, p, m.text, m.value
				d.Field = fmt.Sprintf(".%s[%d]%s", rulesField(direction), i, m.field)
			}
		}
	}
	return d, len(d.Policies) > 0
}

// rule is one of either direction.
type rule struct {
	peers []networkingv1.NetworkPolicyPeer
	ports []networkingv1.NetworkPolicyPort
}

func rulesOf(p *networkingv1.NetworkPolicy, direction networkingv1.PolicyType) (rules []rule) {
	if direction == networkingv1.PolicyTypeEgress {
		for _, r := range p.Spec.Egress {
			rules = append(rules, rule{r.To, r.Ports})
		}
		return rules
	}
	for _, r := range p.Spec.Ingress {
		rules = append(rules, rule{r.From, r.Ports})
	}
	return rules
}

func rulesField(direction networkingv1.PolicyType) string {
	return "spec." + strings.ToLower(string(direction))
}

// restricts reports whether a policy is about a direction: all that say nothing are about what comes in, and about what
// goes out if they have rules for it.
func restricts(p *networkingv1.NetworkPolicy, direction networkingv1.PolicyType) bool {
	if len(p.Spec.PolicyTypes) == 0 {
		return direction == networkingv1.PolicyTypeIngress || len(p.Spec.Egress) > 0
	}
	return slices.Contains(p.Spec.PolicyTypes, direction)
}

// fits reports whether a selector matches; one that cannot be read matches nothing.
func fits(s *metav1.LabelSelector, set map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(set))
}

// How near a rule comes to traffic that it does not let through.
const (
	farOff      = iota + 1 // another port, and another peer or no special one
	otherPeer              // the port, and a peer that has nothing in common
	similarPeer            // the port, and a peer that nearly is the one
	otherPort              // the peer, at another port
	meantIt                // the Service's port or address, or a block with an exception
	allowed                // it lets the traffic through
)

// miss is why a rule does not let traffic through.
type miss struct {
	rank               int
	text, field, value string
}

// miss holds the traffic against a rule of a policy.
func (t *Traffic) miss(p *networkingv1.NetworkPolicy, r rule, other End, direction networkingv1.PolicyType) miss {
	verb, list := "allows", "to"
	if direction == networkingv1.PolicyTypeIngress {
		verb, list = "admits", "from"
	}
	port := len(r.ports) == 0 || slices.ContainsFunc(r.ports, t.hasPort)
	best := miss{rank: allowed}
	for i := range r.peers {
		m := t.peer(p.Namespace, &r.peers[i], other, verb)
		m.field = fmt.Sprintf(".%s[%d]%s", list, i, m.field)
		if i == 0 || m.rank > best.rank {
			best = m
		}
		if best.rank == allowed {
			break
		}
	}
	if port {
		return best
	}
	return t.otherPort(r, best, verb)
}

// otherPort is why a rule with other ports does not let the traffic through; peer is how its peers see it.
func (t *Traffic) otherPort(r rule, peer miss, verb string) miss {
	var ports []string
	for _, p := range r.ports {
		ports = append(ports, t.portText(p))
	}
	m := miss{rank: farOff, field: ".ports", value: And(ports)}
	number := fmt.Sprint(t.Port) + protocolText(t.Protocol)
	if protocolText(t.Protocol) == "" && strings.HasSuffix(And(ports), ")") {
		number += " (TCP)" // beside another one
	}
	m.text = fmt.Sprintf("%s port %s, and the pod's port is %s", verb, And(ports), number)
	if peer.rank != allowed {
		return m
	}
	service := *t
	service.Port = t.ServicePort
	switch {
	case t.ServicePort != 0 && t.ServicePort != t.Port && slices.ContainsFunc(r.ports, service.hasPort):
		m.rank = meantIt
		m.text = fmt.Sprintf("%s port %s, which is that of the Service: policies count the port of the pod, %s", verb,
			And(ports), number)
	case len(r.peers) > 0:
		m.rank = otherPort
	}
	return m
}

// hasPort reports whether a port of a rule is that of the traffic. Names are those of the receiving pod's ports.
func (t *Traffic) hasPort(p networkingv1.NetworkPolicyPort) bool {
	protocol := corev1.ProtocolTCP
	if p.Protocol != nil {
		protocol = *p.Protocol
	}
	switch {
	case protocol != cmp.Or(t.Protocol, corev1.ProtocolTCP):
		return false
	case p.Port == nil || t.Port == 0:
		return true
	case p.Port.StrVal != "":
		return slices.Contains(t.named(p.Port.StrVal, protocol), t.Port)
	case p.EndPort != nil:
		return p.Port.IntVal <= t.Port && t.Port <= *p.EndPort
	}
	return p.Port.IntVal == t.Port
}

// named are the ports of the receiving pod with a name.
func (t *Traffic) named(name string, protocol corev1.Protocol) (ports []int32) {
	if t.To.Pod == nil {
		return nil
	}
	for _, c := range slices.Concat(t.To.Pod.Spec.InitContainers, t.To.Pod.Spec.Containers) {
		for _, p := range c.Ports {
			if p.Name == name && cmp.Or(p.Protocol, corev1.ProtocolTCP) == protocol {
				ports = append(ports, p.ContainerPort)
			}
		}
	}
	return ports
}

// portText is a port of a rule: "53 (UDP)", "80 to 90", "http (8080)".
func (t *Traffic) portText(p networkingv1.NetworkPolicyPort) string {
	protocol := corev1.ProtocolTCP
	if p.Protocol != nil {
		protocol = *p.Protocol
	}
	text := "any"
	switch {
	case p.Port == nil:
	case p.Port.StrVal != "":
		text = p.Port.StrVal + " (which no container has)"
		if ports := t.named(p.Port.StrVal, protocol); len(ports) > 0 {
			text = fmt.Sprintf("%s (%d)", p.Port.StrVal, ports[0])
		}
	case p.EndPort != nil && *p.EndPort != p.Port.IntVal:
		text = fmt.Sprintf("%d to %d", p.Port.IntVal, *p.EndPort)
	default:
		text = p.Port.String()
	}
	return text + protocolText(protocol)
}

// protocolText is a protocol after a port, if it is not the usual one.
func protocolText(p corev1.Protocol) string {
	if p == "" || p == corev1.ProtocolTCP {
		return ""
	}
	return " (" + string(p) + ")"
}

// peer holds the other end against a peer of a rule in a policy of a namespace.
func (t *Traffic) peer(namespace string, p *networkingv1.NetworkPolicyPeer, other End, verb string) miss {
	if p.IPBlock != nil {
		return t.block(p.IPBlock, other, verb)
	}
	if other.Pod == nil {
		return miss{rank: otherPeer, value: "pods",
			text: fmt.Sprintf("%s pods alone, and %s is no pod's address", verb, other.Address)}
	}
	within := other.Pod.Namespace == namespace
	if p.NamespaceSelector != nil {
		within = other.within(p.NamespaceSelector)
	}
	chosen := p.PodSelector == nil || fits(p.PodSelector, other.Pod.Labels)
	if within && chosen {
		return miss{rank: allowed}
	}
	who := "pods"
	if p.PodSelector != nil && !nothing(p.PodSelector) {
		who += " with " + metav1.FormatLabelSelector(p.PodSelector)
	}
	switch {
	case p.NamespaceSelector == nil:
		who += " of namespace " + namespace
	case !nothing(p.NamespaceSelector):
		who += " of namespaces with " + metav1.FormatLabelSelector(p.NamespaceSelector)
	}
	m := miss{rank: similarPeer, value: who}
	var differs []string
	if !chosen {
		text, common := differing(p.PodSelector, other.Pod.Labels)
		differs = append(differs, fmt.Sprintf("%s has %s", other, text))
		if !common || !within {
			m.rank = otherPeer
		}
	}
	if !within && p.NamespaceSelector != nil {
		text := "another name"
		if other.Namespace != nil {
			text, _ = differing(p.NamespaceSelector, other.Namespace)
		}
		differs = append(differs, fmt.Sprintf("namespace %s has %s", other.Pod.Namespace, text))
	} else if !within {
		differs = append(differs, fmt.Sprintf("%s is in namespace %s", other, other.Pod.Namespace))
	}
	m.text = fmt.Sprintf("%s %s, and %s", verb, who, strings.Join(differs, ", and "))
	return m
}

// block holds the other end against a block of addresses. One of its addresses is enough.
func (t *Traffic) block(b *networkingv1.IPBlock, other End, verb string) miss {
	addresses := other.addresses()
	whole, err := netip.ParsePrefix(b.CIDR)
	if len(addresses) == 0 || err != nil {
		return miss{rank: allowed}
	}
	without := ""
	if len(b.Except) > 0 {
		without = " without " + And(b.Except)
	}
	m := miss{rank: otherPeer, field: ".ipBlock", value: b.CIDR + without,
		text: fmt.Sprintf("%s %s, where the address of %s, %s, does not lie", verb, b.CIDR, other, addresses[0])}
	for _, a := range addresses {
		if !whole.Contains(a) {
			continue
		}
		except := slices.IndexFunc(b.Except, func(e string) bool {
			part, err := netip.ParsePrefix(e)
			return err == nil && part.Contains(a)
		})
		if except < 0 {
			return miss{rank: allowed}
		}
		m.rank = meantIt
		m.text = fmt.Sprintf("%s %s without %s, in which the address of %s lies, %s", verb, b.CIDR, b.Except[except],
			other, a)
	}
	for _, a := range t.Service {
		if m.rank < meantIt && verb == "allows" && whole.Contains(a) {
			m.rank = meantIt
			m.text = fmt.Sprintf("%s %s, where the address of the Service lies: policies count that of %s, %s", verb,
				b.CIDR, other, addresses[0])
		}
	}
	return m
}

// differing says what labels have in place of those that a selector wants, and reports whether they have a key of it.
func differing(s *metav1.LabelSelector, set labels.Set) (text string, common bool) {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return "other labels", false
	}
	requirements, _ := selector.Requirements()
	var has []string
	for _, r := range requirements {
		value, ok := set[r.Key()]
		switch {
		case r.Matches(set):
			common = true
		case ok:
			common = true
			has = append(has, r.Key()+"="+value)
		default:
			has = append(has, "no label "+r.Key())
		}
	}
	return And(has), common
}

func nothing(s *metav1.LabelSelector) bool {
	return len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

// String is how sentences name an end: pod web.
func (e End) String() string {
	if e.Pod == nil {
		return e.Address.String()
	}
	return "pod " + e.Pod.Name
}

// within reports whether a selector matches the namespace of an end. All namespaces have their name as a label.
func (e End) within(s *metav1.LabelSelector) bool {
	if e.Namespace != nil {
		return fits(s, e.Namespace)
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return false
	}
	requirements, _ := selector.Requirements()
	return !slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		return r.Key() == corev1.LabelMetadataName && !r.Matches(labels.Set{r.Key(): e.Pod.Namespace})
	})
}

// addresses are those of an end, none if it has not got one yet.
func (e End) addresses() (list []netip.Addr) {
	if e.Pod == nil {
		return []netip.Addr{e.Address}
	}
	for _, ip := range e.Pod.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			list = append(list, a)
		}
	}
	if a, err := netip.ParseAddr(e.Pod.Status.PodIP); err == nil && !slices.Contains(list, a) {
		list = append(list, a)
	}
	return list
}

// hostAddresses are those of a pod's node.
func hostAddresses(p *corev1.Pod) (list []netip.Addr) {
	for _, ip := range append(p.Status.HostIPs, corev1.HostIP{IP: p.Status.HostIP}) {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			list = append(list, a)
		}
	}
	return list
}
