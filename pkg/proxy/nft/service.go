package nft

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"bonsai/pkg/nftables"
	"bonsai/pkg/proxy"
)

// service writes down the ports of one service.
func (c *Config) service(ip string, ports []proxy.Port) nftables.Fragment {
	f := nftables.NewFragment()
	for i := range ports {
		p := &ports[i]
		w := &writer{c: c, f: f, ip: ip, p: p, proto: strings.ToLower(string(p.Protocol))}
		w.clusterIP()
		if p.Exposed() {
			w.exposed()
		}
	}
	return f
}

// writer writes one port into a fragment.
type writer struct {
	c     *Config
	f     nftables.Fragment
	ip    string
	p     *proxy.Port
	proto string
}

// key is the map key of an address of the port.
func (w *writer) key(a netip.Addr) string {
	return a.String() + " . " + w.proto + " . " + strconv.Itoa(int(w.p.Number))
}

func (w *writer) nodeKey() string { return w.proto + " . " + strconv.Itoa(int(w.p.NodePort)) }

// clusterIP leads the cluster IP to the endpoints for inside, or refuses.
func (w *writer) clusterIP() {
	w.f.Put(clusterIPs, w.p.ClusterIP.String(), "")
	key := w.key(w.p.ClusterIP)
	if len(w.p.Internal()) == 0 {
		w.f.Put(noEndpointIPs, key, w.refusal(w.p.InternalLocal))
		return
	}
	w.f.Put(serviceIPs, key, "goto "+w.balancer(w.p.InternalLocal))
}

// refusal is the verdict for a port without endpoints: policy Local keeps silent if other nodes have some.
func (w *writer) refusal(local bool) string {
	if local && w.p.Anywhere {
		return "drop"
	}
	return "goto " + rejectChain
}

// exposed leads node port, external and load balancer addresses to the endpoints for outside.
func (w *writer) exposed() {
	goTo := ""
	if len(w.p.Cluster) > 0 {
		goTo = "goto " + w.external()
	}
	refuse := ""
	if len(w.p.External()) == 0 {
		refuse = w.refusal(w.p.ExternalLocal)
	}
	put := func(in, key, verdict string) {
		if verdict != "" {
			w.f.Put(in, key, verdict)
		}
	}
	for _, a := range append(append([]netip.Addr{}, w.p.ExternalIPs...), w.p.LoadBalancerIPs...) {
		put(serviceIPs, w.key(a), goTo)
		put(noEndpointIPs, w.key(a), refuse)
	}
	if w.p.NodePort != 0 {
		put(serviceNode, w.nodeKey(), goTo)
		put(noEndpointNode, w.nodeKey(), refuse)
	}
	if len(w.p.SourceRanges) > 0 && len(w.p.LoadBalancerIPs) > 0 {
		name := chainName("firewall", w.p)
		w.f.Chains[name] = nftables.Chain{
			Rules: []string{w.ip + " saddr != " + nftables.Prefixes(w.p.SourceRanges, w.ip) + " drop"}}
		for _, a := range w.p.LoadBalancerIPs {
			put(firewallIPs, w.key(a), "goto "+name)
		}
	}
}

// external writes the chain for clients outside. With policy Cluster everything is masqueraded, since the answer must
// come back through this node. With policy Local the client's address is kept, and pods and the node itself use all
// endpoints as they would at the cluster IP.
func (w *writer) external() string {
	var rules []string
	if !w.p.ExternalLocal {
		rules = []string{"jump " + markChain, "goto " + w.balancer(false)}
	} else {
		all := w.balancer(false)
		if pods, _ := w.c.pods(w.ip); pods != "" {
			rules = append(rules, pods+" goto "+all)
		}
		rules = append(rules, "fib saddr type local jump "+markChain, "fib saddr type local goto "+all)
		if len(w.p.Local) > 0 {
			rules = append(rules, "goto "+w.balancer(true))
		}
	}
	name := chainName("external", w.p)
	w.f.Chains[name] = nftables.Chain{Rules: rules}
	return name
}

// balancer writes the chain that chooses one endpoint, and returns its name. If nothing else is to be done, the chain
// translates at once: on another node no client is balanced to itself, and without affinity no client stays. A chain
// for each endpoint would cost the kernel at every change of any chain, and most endpoints are on other nodes.
func (w *writer) balancer(local bool) string {
	kind, endpoints := "service", w.p.Cluster
	if local {
		kind, endpoints = "local", w.p.Local
	}
	name := chainName(kind, w.p)
	if _, done := w.f.Chains[name]; done {
		return name
	}
	rules := w.masquerade()
	var choices []string
	for _, e := range endpoints {
		if !local && w.p.AffinitySeconds == 0 && !slices.Contains(w.p.Here, e) {
			choices = append(choices, w.translate(e))
			continue
		}
		to := w.endpoint(e)
		choices = append(choices, "goto "+to)
		if w.p.AffinitySeconds > 0 {
			rules = append(rules, w.ip+" saddr @"+affinityName(w.p, e)+" goto "+to)
		}
	}
	w.f.Chains[name] = nftables.Chain{Rules: append(rules, oneOf(choices)...)}
	return name
}

// oneOf does one of the choices, each as likely as the others, by a rule for each. A map in one rule would be a set
// without a name, and for each of those the kernel looks at all that there are: with thousands of Services that took
// most of the time.
func oneOf(choices []string) []string {
	rules := make([]string, len(choices))
	for i, choice := range choices {
		if left := len(choices) - i; left > 1 {
			rules[i] = fmt.Sprintf("numgen random mod %d == 0 ", left)
		}
		rules[i] += choice
	}
	return rules
}

// masquerade marks traffic to the cluster IP that must come back through this node: all of it, or what comes from no
// pod.
func (w *writer) masquerade() []string {
	to := fmt.Sprintf("%s daddr %s %s dport %d ", w.ip, w.p.ClusterIP, w.proto, w.p.Number)
	_, others := w.c.pods(w.ip)
	switch {
	case w.c.MasqueradeAll:
		return []string{to + "jump " + markChain}
	case others != "":
		return []string{to + others + " jump " + markChain}
	}
	return nil
}

// pods returns matches for packets of pods and of others; "" if the configuration does not say which these are.
func (c *Config) pods(ip string) (pods, others string) {
	if c.PodInterface != "" {
		return `iifname "` + c.PodInterface + `"`, `iifname != "` + c.PodInterface + `"`
	}
	if all := nftables.Prefixes(c.ClusterCIDRs, ip); all != "" {
		return ip + " saddr " + all, ip + " saddr != " + all
	}
	return "", ""
}

// endpoint writes the chain that translates to one endpoint. A pod that reaches itself is masqueraded, or it would
// answer itself directly.
func (w *writer) endpoint(e netip.AddrPort) string {
	name := endpointName(w.p, e)
	rules := []string{w.ip + " saddr " + e.Addr().String() + " jump " + markChain}
	if w.p.AffinitySeconds > 0 {
		clients := affinityName(w.p, e)
		w.f.Sets[clients] = nftables.Set{Type: nftables.AddressType(w.ip), Seconds: w.p.AffinitySeconds}
		rules = append(rules, "update @"+clients+" { "+w.ip+" saddr }")
	}
	w.f.Chains[name] = nftables.Chain{Rules: append(rules, w.translate(e))}
	return name
}

// translate makes e the destination.
func (w *writer) translate(e netip.AddrPort) string {
	return "meta l4proto " + w.proto + " dnat to " + e.String()
}
