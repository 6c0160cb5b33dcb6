package iptables

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"bonsai/pkg/proxy"
)

// fragment is what one service adds to the rules of a family.
//
// It is made once per change of the service and kept; a round puts the fragments together.
type fragment struct {
	// chains are the chains of the nat table that only this service uses.
	chains map[string][]string
	// common are its rules in the chains that all services share.
	common map[chainRef][]string
}

// chainRef names a chain of a table.
type chainRef struct{ table, chain string }

// The chains that services share.
var (
	natServices     = chainRef{"nat", servicesChain}
	natNodePorts    = chainRef{"nat", nodePortsChain}
	filterServices  = chainRef{"filter", servicesChain}
	filterExternal  = chainRef{"filter", externalChain}
	filterFirewall  = chainRef{"filter", firewallChain}
	filterNodePorts = chainRef{"filter", nodePortsChain}
)

// service writes down the ports of one service.
func (c *Config) service(ports []proxy.Port) fragment {
	f := fragment{chains: map[string][]string{}, common: map[chainRef][]string{}}
	for i := range ports {
		p := &ports[i]
		w := &writer{c: c, f: f, p: p, proto: strings.ToLower(string(p.Protocol)), text: portText(p)}
		w.clusterIP()
		if p.Exposed() {
			w.exposed()
		}
	}
	return f
}

// writer writes one port into a fragment.
type writer struct {
	c           *Config
	f           fragment
	p           *proxy.Port
	proto, text string
}

func (w *writer) put(at chainRef, rule string) { w.f.common[at] = append(w.f.common[at], rule) }

// to matches packets for an address of the port.
func (w *writer) to(a netip.Addr, what string) string {
	return comment(w.text+" "+what) + w.dport(w.p.Number) + " -d " + host(a)
}

func (w *writer) dport(port uint16) string {
	return fmt.Sprintf(" -m %[1]s -p %[1]s --dport %[2]d", w.proto, port)
}

func comment(text string) string { return "-m comment --comment " + strconv.Quote(text) }

// host is an address as a network.
func host(a netip.Addr) string { return netip.PrefixFrom(a, a.BitLen()).String() }

// clusterIP leads the cluster IP to the endpoints for inside, or refuses.
//
// Refusals are in the filter table: nat sees only the first packet of a connection, and cannot reject.
func (w *writer) clusterIP() {
	if len(w.p.Internal()) == 0 {
		w.put(filterServices, w.refuse(w.p.InternalLocal, func(what string) string {
			return w.to(w.p.ClusterIP, what)
		}))
		return
	}
	w.put(natServices, w.to(w.p.ClusterIP, "cluster IP")+" -j "+w.balancer(w.p.InternalLocal))
}

// refuse is the rule for a port without endpoints. Without any endpoint it rejects, so that clients fail at once. With
// policy Local, and endpoints on other nodes, it drops: a load balancer may send here until it notices the health
// check, and a refusal would end the client's connection.
func (w *writer) refuse(local bool, match func(what string) string) string {
	if local && w.p.Anywhere {
		return match("has no local endpoints") + " -j DROP"
	}
	return match("has no endpoints") + " -j REJECT"
}

// exposed leads node port, external and load balancer addresses to the endpoints for outside.
//
// Addresses and node port lead to the same chain (outside). The load balancer's source ranges are checked in between.
func (w *writer) exposed() {
	target := ""
	if len(w.p.Cluster) > 0 {
		target = w.outside()
	}
	none := len(w.p.External()) == 0
	each := func(a netip.Addr, what, target string) {
		if target != "" {
			w.put(natServices, w.to(a, what)+" -j "+target)
		}
		if none {
			w.put(filterExternal, w.refuse(w.p.ExternalLocal, func(what string) string { return w.to(a, what) }))
		}
	}
	for _, a := range w.p.ExternalIPs {
		each(a, "external IP", target)
	}
	// Clients within the ranges are translated and pass the firewall. Without endpoints none is, and all are refused.
	balanced, ranged := target, target != "" && len(w.p.SourceRanges) > 0
	if ranged && len(w.p.LoadBalancerIPs) > 0 {
		balanced = w.sources(target)
	}
	for _, a := range w.p.LoadBalancerIPs {
		each(a, "loadbalancer IP", balanced)
		if ranged {
			w.put(filterFirewall, w.to(a, "traffic not accepted by "+chain(sourcesPrefix, w.text, w.proto))+" -j DROP")
		}
	}
	if w.p.NodePort == 0 {
		return
	}
	if target != "" {
		w.put(natNodePorts, comment(w.text)+w.dport(w.p.NodePort)+" -j "+target)
	}
	if none {
		w.put(filterExternal, w.refuse(w.p.ExternalLocal, func(what string) string {
			return comment(w.text+" "+what) + w.dport(w.p.NodePort) + " -m addrtype --dst-type LOCAL"
		}))
	}
}

// sources writes the chain that lets the allowed clients of a load balancer through; what is left is dropped before it
// goes anywhere.
func (w *writer) sources(target string) string {
	name := chain(sourcesPrefix, w.text, w.proto)
	var rules []string
	for _, r := range w.p.SourceRanges {
		rules = append(rules, comment(w.text+" loadbalancer IP")+" -s "+r.String()+" -j "+target)
	}
	w.f.chains[name] = rules
	return name
}

// outside writes the chain for clients outside. With policy Cluster everything is masqueraded, since the answer must
// come back through this node. With policy Local the client's address is kept, and pods and the node itself use all
// endpoints as they would at the cluster IP.
func (w *writer) outside() string {
	name := chain(outsidePrefix, w.text, w.proto)
	all := w.balancer(false)
	var rules []string
	if !w.p.ExternalLocal {
		rules = []string{comment("masquerade traffic for "+w.text+" external destinations") + " -j " + markMasqChain,
			"-j " + all}
	} else {
		if pods := w.c.pods(w.p.ClusterIP); pods != "" {
			rules = append(rules, comment("pod traffic for "+w.text+" external destinations")+" "+pods+" -j "+all)
		}
		rules = append(rules,
			comment("masquerade LOCAL traffic for "+w.text+" external destinations")+
				" -m addrtype --src-type LOCAL -j "+markMasqChain,
			comment("route LOCAL traffic for "+w.text+" external destinations")+" -m addrtype --src-type LOCAL -j "+all)
		if len(w.p.Local) > 0 {
			rules = append(rules, "-j "+w.balancer(true))
		}
	}
	w.f.chains[name] = rules
	return name
}

// balancer writes the chain that chooses one endpoint, and returns its name.
//
// Each endpoint takes 1/left of what the endpoints before it left: 1/3, then 1/2, then all, which is a third each. With
// affinity, clients that were here within its seconds are looked for first, in the list of each endpoint.
func (w *writer) balancer(local bool) string {
	prefix, endpoints := clusterPrefix, w.p.Cluster
	if local {
		prefix, endpoints = localPrefix, w.p.Local
	}
	name := chain(prefix, w.text, w.proto)
	if _, done := w.f.chains[name]; done {
		return name
	}
	rules := w.masquerade()
	names := make([]string, len(endpoints))
	for i, e := range endpoints {
		names[i] = w.endpoint(e)
		if s := w.p.AffinitySeconds; s > 0 {
			rules = append(rules, fmt.Sprintf("%s -m recent --name %s --rcheck --seconds %d --reap -j %s",
				comment(w.text+" -> "+e.String()), names[i], s, names[i]))
		}
	}
	for i, e := range endpoints {
		rule := comment(w.text + " -> " + e.String())
		if left := len(endpoints) - i; left > 1 {
			rule += fmt.Sprintf(" -m statistic --mode random --probability %.10f", 1/float64(left))
		}
		rules = append(rules, rule+" -j "+names[i])
	}
	w.f.chains[name] = rules
	return name
}

// masquerade marks traffic to the cluster IP that must come back through this node: all of it, or what comes from no
// pod.
func (w *writer) masquerade() []string {
	to := w.to(w.p.ClusterIP, "cluster IP")
	if w.c.MasqueradeAll {
		return []string{to + " -j " + markMasqChain}
	}
	if pods := w.c.pods(w.p.ClusterIP); pods != "" {
		return []string{to + " ! " + pods + " -j " + markMasqChain}
	}
	return nil
}

// endpoint writes the chain that translates to one endpoint. A pod that reaches itself is masqueraded, or it would
// answer itself directly.
func (w *writer) endpoint(e netip.AddrPort) string {
	name := chain(endpointPrefix, w.text, w.proto, e.String())
	remember := ""
	if w.p.AffinitySeconds > 0 {
		remember = " -m recent --name " + name + " --set"
	}
	w.f.chains[name] = []string{
		comment(w.text) + " -s " + host(e.Addr()) + " -j " + markMasqChain,
		comment(w.text) + remember + fmt.Sprintf(" -m %[1]s -p %[1]s -j DNAT --to-destination %[2]s", w.proto, e),
	}
	return name
}

// pods returns the match for packets of pods in an address's family, which has one range; "" if the configuration does
// not say which these are.
func (c *Config) pods(like netip.Addr) string {
	if c.PodInterface != "" {
		name, some := strings.CutSuffix(c.PodInterface, "*")
		if some {
			name += "+"
		}
		return "-i " + name
	}
	for _, p := range c.ClusterCIDRs {
		if p.Addr().Is4() == like.Is4() {
			return "-s " + p.String()
		}
	}
	return ""
}
