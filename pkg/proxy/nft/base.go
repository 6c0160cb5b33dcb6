package nft

import (
	"net/netip"
	"strings"

	"sigs.k8s.io/knftables"
)

// Names of the fixed parts of the table; they are upstream's where upstream has the same part.
const (
	tableName = "kube-proxy"
	entrance  = "nat-prerouting" // stands for the whole table

	serviceIPs      = "service-ips"
	serviceNode     = "service-nodeports"
	noEndpointIPs   = "no-endpoint-services"
	noEndpointNode  = "no-endpoint-nodeports"
	firewallIPs     = "firewall-ips"
	clusterIPs      = "cluster-ips"
	nodePortIPs     = "nodeport-ips"
	markChain       = "mark-for-masquerade"
	rejectChain     = "reject-chain"
	masqueradeChain = "masquerading"
)

// Priorities: traffic is checked against source ranges before its address is translated, and for what no rule caught after.
const (
	beforeNAT = knftables.DNATPriority + "-10"
	afterNAT  = knftables.DNATPriority + "+10"
)

// base is the part of the table that does not depend on services.
//
// The way of a packet: source ranges (prerouting, output), translation to an endpoint (same hooks), refusal of what has no
// endpoint or is a service address still (input, forward, output), masquerade of what was marked (postrouting).
func (c *Config) base(ip string, local []netip.Addr) fragment {
	f := newFragment()
	addr, proto := addressType(ip), "inet_proto . inet_service"
	for _, name := range []string{serviceIPs, noEndpointIPs, firewallIPs} {
		f.sets[name] = set{isMap: true, typ: addr + " . " + proto + " : verdict"}
	}
	for _, name := range []string{serviceNode, noEndpointNode} {
		f.sets[name] = set{isMap: true, typ: proto + " : verdict"}
	}
	f.sets[clusterIPs] = set{typ: addr}
	f.sets[nodePortIPs] = set{typ: addr}

	key := ip + " daddr . meta l4proto . th dport vmap @"
	local, onNode := nodePortMatch(c.NodePortAddresses, ip, local)
	for _, a := range local {
		f.elements[element{nodePortIPs, a.String()}] = ""
	}
	f.chains["services"] = chain{rules: []string{key + serviceIPs, onNode + " meta l4proto . th dport vmap @" + serviceNode}}
	f.chains["endpoints-check"] = chain{rules: []string{key + noEndpointIPs}}
	f.chains["nodeports-check"] = chain{rules: []string{onNode + " meta l4proto . th dport vmap @" + noEndpointNode}}
	f.chains["firewall-check"] = chain{rules: []string{key + firewallIPs}}
	f.chains["cluster-ips-check"] = chain{rules: c.clusterIPsCheck(ip)}
	f.chains[rejectChain] = chain{rules: []string{"reject"}}
	f.chains[markChain] = chain{rules: []string{"mark set mark or 0x4000"}}
	f.chains[masqueradeChain] = chain{rules: []string{"mark and 0x4000 == 0 return", "mark set mark xor 0x4000", "masquerade fully-random"}}
	hooked(f)
	return f
}

// addressType is the nftables type of a family's addresses.
func addressType(ip string) string {
	if ip == "ip" {
		return "ipv4_addr"
	}
	return "ipv6_addr"
}

// hooked adds the chains that the kernel calls.
func hooked(f fragment) {
	add := func(name string, b base, rules ...string) { f.chains[name] = chain{base: &b, rules: rules} }
	const fresh = "ct state new jump "
	add(entrance, base{knftables.NATType, knftables.PreroutingHook, knftables.DNATPriority}, "jump services")
	add("nat-output", base{knftables.NATType, knftables.OutputHook, knftables.DNATPriority}, "jump services")
	add("nat-postrouting", base{knftables.NATType, knftables.PostroutingHook, knftables.SNATPriority}, "jump "+masqueradeChain)
	add("filter-prerouting", base{knftables.FilterType, knftables.PreroutingHook, beforeNAT}, fresh+"firewall-check")
	add("filter-output", base{knftables.FilterType, knftables.OutputHook, beforeNAT}, fresh+"firewall-check")
	add("filter-input", base{knftables.FilterType, knftables.InputHook, beforeNAT}, fresh+"nodeports-check", fresh+"endpoints-check", "jump cluster-ips-check")
	add("filter-forward", base{knftables.FilterType, knftables.ForwardHook, beforeNAT}, fresh+"endpoints-check", "jump cluster-ips-check")
	add("filter-output-post-dnat", base{knftables.FilterType, knftables.OutputHook, afterNAT}, fresh+"nodeports-check", fresh+"endpoints-check", "jump cluster-ips-check")
}

// clusterIPsCheck stops what is still addressed to a service after translation: connections to ports that a service does not
// have, and to addresses that no service has. The first packet is refused, anything else dropped: it never leaves the machine.
func (c *Config) clusterIPsCheck(ip string) []string {
	rules := []string{ip + " daddr @" + clusterIPs + " ct state new reject"}
	if ranges := prefixes(c.ServiceCIDRs, ip); ranges != "" {
		rules = append(rules, ip+" daddr "+ranges+" ct state new reject", ip+" daddr "+ranges+" drop")
	}
	return rules
}

// nodePortMatch returns the node's addresses that take node ports, and the start of the rule that matches them. With a range of
// everything the kernel is asked instead of listing addresses, and loopback stays out.
func nodePortMatch(allowed []netip.Prefix, ip string, local []netip.Addr) ([]netip.Addr, string) {
	var out []netip.Addr
	for _, a := range local {
		if a.Is4() == (ip == "ip") && !a.IsLoopback() {
			out = append(out, a)
		}
	}
	for _, p := range allowed {
		if p.Bits() == 0 && p.Addr().Is4() == (ip == "ip") {
			if ip == "ip" {
				return nil, "fib daddr type local ip daddr != 127.0.0.0/8"
			}
			return nil, "fib daddr type local ip6 daddr != ::1"
		}
	}
	return out, ip + " daddr @" + nodePortIPs
}

// prefixes writes the prefixes of one family as an anonymous set, "" if there are none.
func prefixes(all []netip.Prefix, ip string) string {
	var out []string
	for _, p := range all {
		if p.Addr().Is4() == (ip == "ip") {
			out = append(out, p.String())
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "{ " + strings.Join(out, ", ") + " }"
}
