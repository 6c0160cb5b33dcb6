package network

import (
	"fmt"
	"net/netip"
	"strings"

	"bonsai/pkg/cluster/plan"
)

// HostRules returns the host's packet rules, a table for each family. They
//   - keep the addresses of nodes, pods and Services from leaving the machine;
//   - keep others out: the host forwards for its nodes, and would forward for its neighbors as well;
//   - masquerade what leaves, if there is egress. Without it, nodes and pods reach nothing of the host except the API
//     server and the registry mirrors (--registry-mirror);
//   - lead this machine's own clients from loopback to the API server.
//
// A packet must pass the base chains of all tables, so what is dropped here stays dropped, whatever Docker, ufw or
// firewalld accept. Nothing of IPv6 leaves: only this machine knows the networks, and a host that is a router would no
// longer listen to other routers.
//
// Make loads the text, and RuleKeeper again if somebody has removed a table. Otherwise only the set joinedSet changes.
func HostRules(c plan.Config) string {
	rules := ""
	for _, six := range []bool{false, true} {
		own := family(c.Networks().All(), six)
		if len(own) > 0 {
			rules += rulesOf(c, six, own)
		}
	}
	return rules
}

// family returns the networks of one family.
func family(networks []netip.Prefix, six bool) []netip.Prefix {
	var out []netip.Prefix
	for _, n := range networks {
		if n.Addr().Is6() == six {
			out = append(out, n)
		}
	}
	return out
}

// nftSet returns a set of networks in nft's notation.
func nftSet(networks []netip.Prefix) string {
	var texts []string
	for _, n := range networks {
		texts = append(texts, n.String())
	}
	return "{ " + strings.Join(texts, ", ") + " }"
}

// joinedSet is the set with the addresses of joined machines. It is empty at first; RuleKeeper.admit fills it.
const joinedSet = "joined"

// rulesOf returns the table of one family, in which the cluster has the networks own.
//
// In each chain the order decides: first the answers to what the cluster itself began, then joined machines, then the
// refusal of everybody else.
func rulesOf(c plan.Config, six bool, own []netip.Prefix) string {
	ip := "ip" // the table's family, and the header's name
	if six {
		ip = "ip6"
	}
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	mark := c.Mark()
	say("table %s %s {", ip, mark)
	admitted := ""
	if c.IsJoinable() && !six { // packets from machines that have joined, and from their pods
		say("\tset %s { type ipv4_addr; }", joinedSet)
		admitted = fmt.Sprintf("\t\tiifname != %q ip saddr @%s accept\n\t\tiifname != %[1]q ip saddr %[3]s accept",
			mark, joinedSet, nftSet(c.Networks().Pods()))
	}

	say("\tchain forward {\n\t\ttype filter hook forward priority -10; policy accept;")
	say("\t\toifname %q iifname != %[1]q ct state established,related accept", mark)
	if admitted != "" {
		say("%s", strings.ReplaceAll(admitted, "iifname", fmt.Sprintf("oifname %q iifname", mark)))
	}
	say("\t\toifname %q iifname != %[1]q drop", mark)
	// In a joinable cluster some pods are on other machines, and routes lead there. Addresses without such a route meet
	// the unreachable route of Make.
	if !c.IsJoinable() {
		say("\t\tiifname %q oifname != %[1]q %s daddr %s drop", mark, ip, nftSet(own))
	}
	if six || !c.Egress {
		say("\t\tiifname %q oifname != %[1]q drop", mark)
	}
	say("\t}")

	say("\tchain input {\n\t\ttype filter hook input priority -10; policy accept;")
	say("\t\tct state established,related accept")
	if admitted != "" {
		say("%s", admitted)
	}
	say("\t\tiifname != { %q, \"lo\" } %s daddr %s drop", mark, ip, nftSet(own))
	if !c.Egress {
		if c.Networks().HostIP().Is6() == six {
			say("\t\tiifname %q %s daddr %s tcp dport %d accept", mark, ip, c.Networks().HostIP(), c.Ports.API)
		}
		for _, at := range plan.MirrorAddresses(c.Mirrors, six) {
			say("\t\tiifname %q %s daddr %s tcp dport %d accept", mark, ip, at.Addr(), at.Port())
		}
		say("\t\tiifname %q ct state new drop", mark) // neighbor discovery is no connection, and so not new
	}
	say("\t}")

	if !six {
		inner := nftSet(family(append(c.Networks().Nodes(), c.Networks().Pods()...), false))
		say("\tchain postrouting {\n\t\ttype nat hook postrouting priority srcnat; policy accept;")
		say("\t\tip saddr %s ip daddr != %[1]s oifname != %[2]q masquerade\n\t}", inner, mark)
	}
	if c.Networks().HostIP().Is6() == six {
		to := c.Networks().HostIP().String()
		if six {
			to = fmt.Sprintf("[%s]:%d", to, c.Ports.API)
		}
		say("\tchain output {\n\t\ttype nat hook output priority -100; policy accept;")
		say("\t\t%s daddr %s tcp dport %d dnat to %s\n\t}", ip, c.Networks().Loopback(), c.Ports.API, to)
	}
	say("}")
	return b.String()
}
