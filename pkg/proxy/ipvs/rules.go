package ipvs

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"

	"sigs.k8s.io/knftables"

	"bonsai/pkg/nftables"
)

// Names of the parts of the table of packet rules.
const (
	tableName = "kube-proxy-ipvs"
	entrance  = "nat-postrouting" // stands for the whole table

	// virtualServers is also the record of what the proxy made, which a later process reads.
	virtualServers = "virtual-servers"
	serviceIPs     = "service-ips"
	masqueraded    = "masqueraded-services"
	refused        = "refused-services"
	firewalled     = "firewalled-services"
	hairpins       = "hairpin-endpoints"

	markChain       = "mark-for-masquerade"
	othersChain     = "mark-others"
	rejectChain     = "reject-all"
	silentChain     = "drop-all"
	rejectOutsiders = "reject-outsiders"
	silentOutsiders = "drop-outsiders"
	unserved        = "unserved"
)

// Priorities: IPVS translates what processes of the node send at NF_IP_PRI_NAT_DST + 2, and everything else on its way
// into the node, after all rules here. Connections are tracked before.
const (
	beforeNAT  = knftables.DNATPriority + "-10"
	beforeIPVS = knftables.ManglePriority
)

// fragment is the packet rules beside the virtual servers: IPVS chooses an endpoint and translates to it, and knows
// neither source ranges nor masquerade. The addresses of Services are the node's own, so the rules also keep the node's
// own processes from being reached at them. hairpin are endpoints that may be on this node.
//
// The way of a packet: source ranges and marks (prerouting, output), refusal of what has no endpoint or no virtual
// server (input, forward, output), masquerade of what was marked or would reach its own sender (postrouting).
func (c *Config) fragment(ip string, want map[Key]wanted, hairpin map[netip.Addr]bool,
	serviceCIDRs []netip.Prefix) nftables.Fragment {
	f := nftables.NewFragment()
	addr := nftables.AddressType(ip)
	key := addr + " . inet_proto . inet_service"
	for _, name := range []string{masqueraded, refused, firewalled} {
		f.Sets[name] = nftables.Set{IsMap: true, Type: key + " : verdict"}
	}
	f.Sets[virtualServers] = nftables.Set{Type: key}
	f.Sets[serviceIPs] = nftables.Set{Type: addr}
	f.Sets[hairpins] = nftables.Set{Type: addr + " . " + addr}
	c.chains(f, ip, serviceCIDRs)
	for k, w := range want {
		c.put(f, ip, k, w)
	}
	for a := range hairpin {
		f.Put(hairpins, a.String()+" . "+a.String(), "")
	}
	return f
}

// elementKey is a virtual server as an element of a set.
func elementKey(k Key) string {
	return k.At.Addr().String() + " . " + k.Protocol + " . " + strconv.Itoa(int(k.At.Port()))
}

// put adds the elements of one virtual server.
func (c *Config) put(f nftables.Fragment, ip string, k Key, w wanted) {
	key := elementKey(k)
	f.Put(virtualServers, key, "")
	if w.bound {
		f.Put(serviceIPs, k.At.Addr().String(), "")
	}
	_, others := c.pods(ip)
	switch {
	case w.access == outside, w.access == inside && c.MasqueradeAll:
		f.Put(masqueraded, key, "jump "+markChain)
	case w.access == inside && others != "":
		f.Put(masqueraded, key, "jump "+othersChain)
	}
	if r := w.refuse; r != nil {
		f.Put(refused, key, "jump "+map[refusal]string{{}: rejectChain, {silent: true}: silentChain,
			{outsiders: true}: rejectOutsiders, {silent: true, outsiders: true}: silentOutsiders}[*r])
	}
	if len(w.ranges) > 0 {
		name := nftables.Unique("firewall", w.service.String()+"/"+k.Protocol+"/"+k.At.Addr().String()+"/"+
			strconv.Itoa(int(k.At.Port())))
		f.Chains[name] = nftables.Chain{
			Rules: []string{ip + " saddr != " + nftables.Prefixes(w.ranges, ip) + " drop"}}
		f.Put(firewalled, key, "jump "+name)
	}
}

// chains adds everything that does not depend on services.
func (c *Config) chains(f nftables.Fragment, ip string, serviceCIDRs []netip.Prefix) {
	key := ip + " daddr . meta l4proto . th dport "
	mark := fmt.Sprintf("%#x", cmp.Or(c.MasqueradeMark, 0x4000))
	pods, others := c.pods(ip)
	var friends []string
	if pods != "" {
		friends = []string{pods + " return"}
	}
	friends = append(friends, "fib saddr type local return")
	for name, rules := range map[string][]string{
		markChain:       {"mark set mark or " + mark},
		othersChain:     {others + " mark set mark or " + mark},
		rejectChain:     {"reject"},
		silentChain:     {"drop"},
		rejectOutsiders: append(friends[:len(friends):len(friends)], "reject"),
		silentOutsiders: append(friends[:len(friends):len(friends)], "drop"),
		unserved:        unservedRules(ip, key, serviceCIDRs),
	} {
		if name == othersChain && others == "" {
			continue
		}
		f.Chains[name] = nftables.Chain{Rules: rules}
	}
	f.Hook("filter-prerouting", knftables.FilterType, knftables.PreroutingHook, beforeNAT,
		"ct state new "+key+"vmap @"+firewalled, "ct state new "+key+"vmap @"+masqueraded)
	f.Hook("filter-input", knftables.FilterType, knftables.InputHook, beforeNAT,
		"ct state new "+key+"vmap @"+refused, "jump "+unserved)
	f.Hook("filter-forward", knftables.FilterType, knftables.ForwardHook, beforeNAT, "jump "+unserved)
	// A process of the node that asks a Service has the Service's address, which is on Link, and needs another one. Its
	// address says nothing about source ranges either.
	f.Hook("filter-output", knftables.FilterType, knftables.OutputHook, beforeIPVS,
		"ct state new "+key+"vmap @"+refused, "ct state new "+key+"@"+virtualServers+" jump "+markChain,
		"jump "+unserved)
	f.Hook(entrance, knftables.NATType, knftables.PostroutingHook, knftables.SNATPriority,
		ip+" saddr . "+ip+" daddr @"+hairpins+" masquerade fully-random",
		"mark and "+mark+" == 0 return", "mark set mark xor "+mark, "masquerade fully-random")
}

// unservedRules stops what is addressed to a Service, but to no virtual server: it would reach a process of the node,
// or leave the machine. A Service's address answers a ping. Answers to processes of the node that have a Service's
// address are let through.
func unservedRules(ip, key string, serviceCIDRs []netip.Prefix) []string {
	icmp := "icmp"
	if ip == "ip6" {
		icmp = "ipv6-icmp"
	}
	rules := []string{"ct state established,related return", key + "@" + virtualServers + " return",
		ip + " daddr @" + serviceIPs + " meta l4proto " + icmp + " return",
		ip + " daddr @" + serviceIPs + " ct state new reject"}
	if ranges := nftables.Prefixes(serviceCIDRs, ip); ranges != "" {
		rules = append(rules, ip+" daddr "+ranges+" ct state new reject", ip+" daddr "+ranges+" drop")
	}
	return rules
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
