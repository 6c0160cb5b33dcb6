package nft

import (
	"cmp"
	"fmt"
	"net/netip"

	"sigs.k8s.io/knftables"

	"bonsai/pkg/nftables"
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

// Priorities: traffic is checked against source ranges before its address is translated, and for what no rule caught
// after.
const (
	beforeNAT = knftables.DNATPriority + "-10"
	afterNAT  = knftables.DNATPriority + "+10"
)

// base is the part of the table that does not depend on services.
//
// The way of a packet: source ranges (prerouting, output), translation to an endpoint (same hooks), refusal of what has
// no endpoint or is a service address still (input, forward, output), masquerade of what was marked (postrouting).
func (c *Config) base(ip string, local []netip.Addr, serviceCIDRs []netip.Prefix) nftables.Fragment {
	f := nftables.NewFragment()
	addr, proto := nftables.AddressType(ip), "inet_proto . inet_service"
	for _, name := range []string{serviceIPs, noEndpointIPs, firewallIPs} {
		f.Sets[name] = nftables.Set{IsMap: true, Type: addr + " . " + proto + " : verdict"}
	}
	for _, name := range []string{serviceNode, noEndpointNode} {
		f.Sets[name] = nftables.Set{IsMap: true, Type: proto + " : verdict"}
	}
	f.Sets[clusterIPs] = nftables.Set{Type: addr}
	f.Sets[nodePortIPs] = nftables.Set{Type: addr}

	key := ip + " daddr . meta l4proto . th dport vmap @"
	local, onNode := nodePortMatch(c.NodePortAddresses, ip, local)
	for _, a := range local {
		f.Put(nodePortIPs, a.String(), "")
	}
	f.Chains["services"] = nftables.Chain{
		Rules: []string{key + serviceIPs, onNode + " meta l4proto . th dport vmap @" + serviceNode}}
	f.Chains["endpoints-check"] = nftables.Chain{Rules: []string{key + noEndpointIPs}}
	f.Chains["nodeports-check"] = nftables.Chain{
		Rules: []string{onNode + " meta l4proto . th dport vmap @" + noEndpointNode}}
	f.Chains["firewall-check"] = nftables.Chain{Rules: []string{key + firewallIPs}}
	f.Chains["cluster-ips-check"] = nftables.Chain{Rules: clusterIPsCheck(ip, serviceCIDRs)}
	f.Chains[rejectChain] = nftables.Chain{Rules: []string{"reject"}}
	mark := fmt.Sprintf("%#x", cmp.Or(c.MasqueradeMark, 0x4000))
	f.Chains[markChain] = nftables.Chain{Rules: []string{"mark set mark or " + mark}}
	f.Chains[masqueradeChain] = nftables.Chain{
		Rules: []string{"mark and " + mark + " == 0 return", "mark set mark xor " + mark, "masquerade fully-random"}}
	hooked(f)
	return f
}

// hooked adds the chains that the kernel calls.
func hooked(f nftables.Fragment) {
	const fresh = "ct state new jump "
	f.Hook(entrance, knftables.NATType, knftables.PreroutingHook, knftables.DNATPriority, "jump services")
	f.Hook("nat-output", knftables.NATType, knftables.OutputHook, knftables.DNATPriority, "jump services")
	f.Hook("nat-postrouting", knftables.NATType, knftables.PostroutingHook, knftables.SNATPriority,
		"jump "+masqueradeChain)
	f.Hook("filter-prerouting", knftables.FilterType, knftables.PreroutingHook, beforeNAT, fresh+"firewall-check")
	f.Hook("filter-output", knftables.FilterType, knftables.OutputHook, beforeNAT, fresh+"firewall-check")
	f.Hook("filter-input", knftables.FilterType, knftables.InputHook, beforeNAT, fresh+"nodeports-check",
		fresh+"endpoints-check", "jump cluster-ips-check")
	f.Hook("filter-forward", knftables.FilterType, knftables.ForwardHook, beforeNAT, fresh+"endpoints-check",
		"jump cluster-ips-check")
	f.Hook("filter-output-post-dnat", knftables.FilterType, knftables.OutputHook, afterNAT, fresh+"nodeports-check",
		fresh+"endpoints-check", "jump cluster-ips-check")
}

// clusterIPsCheck stops what is still addressed to a service after translation: connections to ports that a service
// does not have, and to addresses that no service has. The first packet is refused, anything else dropped: it never
// leaves the machine.
func clusterIPsCheck(ip string, serviceCIDRs []netip.Prefix) []string {
	rules := []string{ip + " daddr @" + clusterIPs + " ct state new reject"}
	if ranges := nftables.Prefixes(serviceCIDRs, ip); ranges != "" {
		rules = append(rules, ip+" daddr "+ranges+" ct state new reject", ip+" daddr "+ranges+" drop")
	}
	return rules
}

// nodePortMatch returns the node's addresses that take node ports, and the start of the rule that matches them. With a
// range of everything the kernel is asked instead of listing addresses, and loopback stays out.
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
