package nft

import (
	"crypto/sha256"
	"encoding/base32"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/knftables"

	"bonsai/pkg/network"
	"bonsai/pkg/nftables"
)

// Sets of the fixed part.
const (
	localPods = "local-pods"  // addresses of the node's pods
	selves    = "local-pairs" // the same twice: a pod may always reach itself
)

// words are how a direction is written: what it is called, the chains' place, and which end of a packet is the pod and
// which the peer.
type words struct {
	name, pods string
	priority   knftables.BaseChainPriority
	pod, peer  string
}

func egressWords() words {
	return words{"egress", "egress-pods", knftables.FilterPriority, "saddr", "daddr"}
}

func ingressWords() words {
	return words{"ingress", "ingress-pods", knftables.FilterPriority + "+1", "daddr", "saddr"}
}

func wordsOf(d network.Direction) words {
	if d == network.Egress {
		return egressWords()
	}
	return ingressWords()
}

// policyBase is the part of the table that does not depend on policies.
//
// Packets are looked at where they are forwarded, after their destination was translated to an endpoint: first whether
// the pod that they come from may send them, then whether the pod that they go to may get them; in each of the two
// chains "accept" goes on with the next. What the node itself sends to its pods, or gets from them, passes neither: a
// node may always reach its pods (probes), and they it. Packets between pods on one bridge pass here as well where
// br_netfilter hands them over (bridge-nf-call-iptables).
//
// A packet that IPVS leads to an endpoint is not forwarded: the node gets it, at the Service's address, and sends it
// again. So what the node sends is looked at as well, unless it comes from the node itself.
func policyBase(ip string, u *network.PolicyUpdate) nftables.Fragment {
	f := nftables.NewFragment()
	addr := nftables.AddressType(ip)
	f.Sets[localPods] = nftables.Set{Type: addr}
	f.Sets[selves] = nftables.Set{Type: addr + " . " + addr}
	own := nftables.Prefixes(u.Own, ip)
	for _, d := range network.Directions() {
		w := wordsOf(d)
		f.Sets[w.pods] = nftables.Set{IsMap: true, Type: addr + " : verdict"}
		rules := []string{"ct state established,related accept"}
		if ip == "ip6" {
			// Between pods on one bridge neighbours are found by packets like any other.
			rules = append(rules, "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit, nd-router-advert } accept")
		}
		rules = append(rules, ip+" saddr . "+ip+" daddr @"+selves+" accept", ip+" "+w.pod+" vmap @"+w.pods)
		if u.Closed[d] && own != "" {
			rules = append(rules, ip+" "+w.pod+" "+own+" "+ip+" "+w.pod+" != @"+localPods+" drop")
		}
		f.Hook("forward-"+w.name, knftables.FilterType, knftables.ForwardHook, w.priority, rules...)
		sent := slices.Concat(rules[:1], []string{"fib saddr type local accept"}, rules[1:])
		f.Hook("output-"+w.name, knftables.FilterType, knftables.OutputHook, w.priority, sent...)
	}
	return f
}

// policyFragment is the chains of a policy, one for each direction in which it isolates: they accept what it allows.
func policyFragment(ip string, name network.Name, p *network.Policy) nftables.Fragment {
	f := nftables.Fragment{}
	if p == nil {
		return f
	}
	f.Chains = map[string]nftables.Chain{}
	for _, d := range network.Directions() {
		if !p.Affects[d] {
			continue
		}
		var rules []string
		for i := range p.Rules[d] {
			rules = append(rules, policyRule(ip, wordsOf(d), &p.Rules[d][i])...)
		}
		f.Chains[policyChain(d, name)] = nftables.Chain{Rules: rules}
	}
	return f
}

// silent are the chains of f without rules.
func silent(f nftables.Fragment) nftables.Fragment {
	out := nftables.Fragment{Chains: map[string]nftables.Chain{}}
	for name := range f.Chains {
		out.Chains[name] = nftables.Chain{}
	}
	return out
}

// policyRule writes a rule: one line for each peer and each kind of ports.
func policyRule(ip string, w words, r *network.PolicyRule) []string {
	var peers, ports []string
	if r.AnyPeer {
		peers = []string{""}
	}
	for _, g := range r.Groups {
		peers = append(peers, ip+" "+w.peer+" @"+groupName(g)+" ")
	}
	for _, b := range r.Blocks {
		if text, ok := blockMatch(ip, w, &b); ok {
			peers = append(peers, text)
		}
	}
	if r.AnyPort {
		ports = []string{""}
	}
	if len(r.Ports) > 0 {
		ports = append(ports, "meta l4proto . th dport "+portSet(r.Ports)+" ")
	}
	for _, n := range r.Named {
		ports = append(ports, ip+" daddr . meta l4proto . th dport @"+namedPortName(n)+" ")
	}
	var rules []string
	for _, peer := range peers {
		for _, port := range ports {
			rules = append(rules, peer+port+"accept")
		}
	}
	return rules
}

// blockMatch matches a range except its exceptions; not ok if it is of the other family.
func blockMatch(ip string, w words, b *network.Block) (string, bool) {
	if b.Range.Addr().Is4() != (ip == "ip") {
		return "", false
	}
	text := ""
	if b.Range.Bits() > 0 {
		text = ip + " " + w.peer + " " + b.Range.String() + " "
	}
	if except := nftables.Prefixes(b.Except, ip); except != "" {
		text += ip + " " + w.peer + " != " + except + " "
	}
	return text, true
}

// portSet writes ranges as an anonymous set of protocol and port.
func portSet(ranges []network.PortRange) string {
	var all []string
	for _, r := range ranges {
		text := strings.ToLower(string(r.Protocol)) + " . " + strconv.Itoa(int(r.First))
		if r.Last != r.First {
			text += "-" + strconv.Itoa(int(r.Last))
		}
		all = append(all, text)
	}
	return "{ " + strings.Join(all, ", ") + " }"
}

// isolationFragment is the chain of pods that the same policies isolate. What none of them allows is refused, so that a
// client knows at once; what is no connection's first packet is dropped.
func isolationFragment(ip, key string, i *network.Isolation) nftables.Fragment {
	if i == nil {
		return nftables.Fragment{}
	}
	var rules []string
	for _, name := range i.Policies {
		rules = append(rules, "jump "+policyChain(i.Direction, name))
	}
	icmp := "icmp"
	if ip == "ip6" {
		icmp = "icmpv6"
	}
	// A client on the same machine gets the ICMP message while it still holds its socket, and believes only the second
	// one, after a second. It believes a reset at once. But the kernel sends a reset over a bridge without translating
	// it back to the Service's address.
	unreachable := " reject with " + icmp + " type admin-prohibited"
	rules = append(rules, "ct state new ct status dnat"+unreachable,
		"ct state new meta l4proto tcp reject with tcp reset", "ct state new"+unreachable, "drop")
	return nftables.Fragment{Chains: map[string]nftables.Chain{isolationChain(key): {Rules: rules}}}
}

// podFragment is where a pod's addresses stand: in the groups that it belongs to, at its named ports, and, on its node,
// before its isolation.
func podFragment(ip string, p *network.PolicyPod) nftables.Fragment {
	f := nftables.Fragment{}
	if p == nil {
		return f
	}
	f.Elements = map[nftables.Element]string{}
	for _, a := range p.Addresses {
		if a.Is4() == (ip == "ip") {
			podElements(f, p, a)
		}
	}
	return f
}

func podElements(f nftables.Fragment, p *network.PolicyPod, a netip.Addr) {
	key := a.String()
	for _, g := range p.Groups {
		f.Put(groupName(g), key, "")
	}
	for _, port := range p.Ports {
		number := strings.ToLower(string(port.Protocol)) + " . " + strconv.Itoa(int(port.Number))
		f.Put(namedPortName(port.NamedPort), key+" . "+number, "")
	}
	if !p.Local {
		return
	}
	f.Put(localPods, key, "")
	f.Put(selves, key+" . "+key, "")
	for _, d := range network.Directions() {
		if i := p.Isolation[d]; i != "" {
			f.Put(wordsOf(d).pods, key, "goto "+isolationChain(i))
		}
	}
}

func policyChain(d network.Direction, name network.Name) string {
	return nftables.Unique(wordsOf(d).name, name.String())
}

func groupName(key string) string      { return "group-" + digest(key) }
func isolationChain(key string) string { return "isolation-" + digest(key) }

func namedPortName(p network.NamedPort) string {
	return "port-" + strings.ToLower(string(p.Protocol)) + "-" + p.Name
}

// digest returns a name for a text that nftables could not parse. Users cannot choose a text with another's digest.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base32.StdEncoding.EncodeToString(sum[:])[:26]
}
