package iptables

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"bonsai/pkg/proxy"
)

// jumps lead from the kernel's chains to ours; each is inserted at the top, so the last of the list stands first.
// Chains and comments are those of Kubernetes, because other programs look for them.
var jumps = [...]struct {
	table, from, to, comment string
	fresh                    bool // new connections only
}{
	{"filter", "INPUT", externalChain, "kubernetes externally-visible service portals", true},
	{"filter", "FORWARD", externalChain, "kubernetes externally-visible service portals", true},
	{"filter", "INPUT", nodePortsChain, "kubernetes health check service ports", false},
	{"filter", "FORWARD", servicesChain, "kubernetes service portals", true},
	{"filter", "OUTPUT", servicesChain, "kubernetes service portals", true},
	{"filter", "FORWARD", forwardChain, "kubernetes forwarding rules", false},
	{"filter", "INPUT", firewallChain, "kubernetes load balancer firewall", true},
	{"filter", "OUTPUT", firewallChain, "kubernetes load balancer firewall", true},
	{"filter", "FORWARD", firewallChain, "kubernetes load balancer firewall", true},
	{"nat", "OUTPUT", servicesChain, "kubernetes service portals", false},
	{"nat", "PREROUTING", servicesChain, "kubernetes service portals", false},
	{"nat", "POSTROUTING", postroutingChain, "kubernetes postrouting rules", false},
}

// fixed are the rules that do not depend on services. Packets that must be masqueraded are only marked on their way
// (KUBE-MARK-MASQ), and masqueraded after routing (KUBE-POSTROUTING), where the address to use is known.
func (c *Config) fixed() map[chainRef][]string {
	mark := fmt.Sprintf("%#x", cmp.Or(c.MasqueradeMark, 0x4000)) // upstream's bit 14
	marked := " -m mark --mark " + mark + "/" + mark
	return map[chainRef][]string{
		{"nat", markMasqChain}: {"-j MARK --or-mark " + mark},
		{"nat", postroutingChain}: {
			"-m mark ! --mark " + mark + "/" + mark + " -j RETURN",
			"-j MARK --xor-mark " + mark, // not again after IPsec or another table
			comment("kubernetes service traffic requiring SNAT") + " -j MASQUERADE --random-fully",
		},
		{"filter", forwardChain}: {
			// An answer that conntrack does not know would pass without translation, and its receiver would reset the
			// connection.
			"-m conntrack --ctstate INVALID -j DROP",
			comment("kubernetes forwarding rules") + marked + " -j ACCEPT",
			comment("kubernetes forwarding conntrack rule") + " -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
		},
		{"nat", canaryChain}: nil,
	}
}

// last are the rules that stand behind those of all services: node ports, for they match more than one address, and the
// refusal of addresses of the service ranges that no rule caught, which never leave the machine.
func (t *Table) last(u *proxy.Update, local []netip.Addr) map[chainRef][]string {
	out := map[chainRef][]string{}
	const note = "kubernetes service nodeports; NOTE: this must be the last rule in this chain"
	if t.anyLocal() {
		loopback := "127.0.0.0/8"
		if t.six {
			loopback = "::1/128"
		}
		out[natServices] = []string{comment(note) + " ! -d " + loopback + " -m addrtype --dst-type LOCAL -j " +
			nodePortsChain}
	} else {
		for _, a := range local {
			if a.Is6() == t.six && !a.IsLoopback() {
				out[natServices] = append(out[natServices], comment(note)+" -d "+host(a)+" -j "+nodePortsChain)
			}
		}
	}
	for _, r := range u.ServiceCIDRs {
		if r.Addr().Is6() == t.six {
			out[filterServices] = append(out[filterServices],
				comment("no service has this address and port")+" -d "+r.String()+" -j REJECT")
		}
	}
	for name, port := range t.health {
		out[filterNodePorts] = append(out[filterNodePorts],
			comment(name.Namespace+"/"+name.Name+" health check node port")+
				fmt.Sprintf(" -m tcp -p tcp --dport %d -j ACCEPT", port))
	}
	slices.Sort(out[filterNodePorts])
	return out
}

// anyLocal reports whether every address of the machine takes node ports.
func (t *Table) anyLocal() bool {
	return !t.config.Primary && len(t.config.NodePortAddresses) == 0 ||
		slices.ContainsFunc(t.config.NodePortAddresses, func(p netip.Prefix) bool {
			return p.Bits() == 0 && p.Addr().Is6() == t.six
		})
}

// isOwn reports whether a chain is one of a port or endpoint.
func isOwn(chain string) bool {
	return slices.ContainsFunc(ownPrefixes[:], func(prefix string) bool { return strings.HasPrefix(chain, prefix) })
}
