package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// slots is how many clusters can be on a machine whose addresses and ports were all chosen by Up: the pods' networks, counted down
// from 10.244, would meet the services', counted up from 10.96.
const slots = 64

// inSlot returns c with what it leaves open filled in: addresses and ports that no cluster in another slot has.
func (c Config) inSlot(i int) Config {
	octet := byte(i)
	fill := func(p *netip.Prefix, bits int, a, b, third byte) {
		if !p.IsValid() {
			*p = netip.PrefixFrom(netip.AddrFrom4([4]byte{a, b, third, 0}), bits)
		}
	}
	fill(&c.NodeSubnet, 24, 10, 77, octet)
	fill(&c.PodSubnet, 16, 10, 244-octet, 0)
	fill(&c.ServiceSubnet, 16, 10, 96+octet, 0)
	// Upstream's ports, which differ in their last two digits, and so differ from all those of other slots.
	for port, first := range map[*int]int{&c.Ports.API: 6443, &c.Ports.EtcdClient: 2379, &c.Ports.EtcdPeer: 2380, &c.Ports.ControllerManager: 10257, &c.Ports.Scheduler: 10259} {
		if *port == 0 {
			*port = first + 100*i
		}
	}
	return c
}

// filledFrom returns c with what it leaves open as in old.
func (c Config) filledFrom(old Config) Config {
	for own, before := range map[*netip.Prefix]netip.Prefix{&c.NodeSubnet: old.NodeSubnet, &c.PodSubnet: old.PodSubnet, &c.ServiceSubnet: old.ServiceSubnet} {
		if !own.IsValid() {
			*own = before
		}
	}
	for own, before := range map[*int]int{&c.Ports.API: old.Ports.API, &c.Ports.EtcdClient: old.Ports.EtcdClient, &c.Ports.EtcdPeer: old.Ports.EtcdPeer,
		&c.Ports.ControllerManager: old.Ports.ControllerManager, &c.Ports.Scheduler: old.Ports.Scheduler} {
		if *own == 0 {
			*own = before
		}
	}
	return c
}

// machine is what a cluster may collide with, without what is its own.
type machine struct {
	clusters []Config          // the others, running or stopped
	networks []network         // addresses and routes of the host
	contexts map[string]string // of the user's kubeconfig, with the data directory of the cluster that each is for, or ""
	// portOwner tells who listens where the cluster would, "" for nobody but the cluster itself.
	portOwner func(at netip.AddrPort) string
	// udpTaken tells whether somebody has a port of UDP.
	udpTaken func(at netip.AddrPort) bool
}

// network is an address or a route of the host.
type network struct {
	prefix netip.Prefix
	claim
}

// claim is something that a cluster needs and somebody else has.
type claim struct {
	what string // "the address 10.77.0.1/24", …
	by   string // "the cluster in /var/lib/bonsai", "process 12 (etcd)", …
}

// plan returns c with what it leaves open filled in, in the first slot that is free. The error names all that is taken of what c
// says, and by whom.
func (m machine) plan(c Config) (Config, error) {
	if claims := m.collisions(c); len(claims) > 0 {
		return c, describeClaims(claims)
	}
	for i := range slots {
		full := c.inSlot(i) // to look who listens on a port takes longest
		if full.Validate() == nil && len(m.claimed(full)) == 0 && len(m.held(full)) == 0 {
			return full, nil
		}
	}
	first := c.inSlot(0)
	return c, fmt.Errorf("all %d places for a cluster on this machine are taken, of the first: %w", slots, errors.Join(first.Validate(), describeClaims(m.collisions(first))))
}

// collisions returns what others have of what c says.
func (m machine) collisions(c Config) []claim { return append(m.claimed(c), m.held(c)...) }

// claimed returns what of c other clusters and contexts have by what is written down of them.
func (m machine) claimed(c Config) []claim {
	var found []claim
	for _, other := range m.clusters {
		by := theCluster(other.DataDir)
		if other.Name == c.Name {
			found = append(found, claim{"the name " + c.Name, by})
		}
		for _, own := range c.subnets() {
			for _, theirs := range other.subnets() {
				if own.prefix.IsValid() && theirs.prefix.IsValid() && own.prefix.Overlaps(theirs.prefix) {
					found = append(found, claim{"the network " + theirs.prefix.String(), by})
				}
			}
		}
		for _, own := range c.published(true) {
			if slices.ContainsFunc(other.published(true), func(theirs netip.AddrPort) bool { return overlap(own, theirs) }) {
				found = append(found, claim{"the port " + own.String() + "/udp", by})
			}
		}
		for _, own := range c.listening() {
			if slices.ContainsFunc(other.listening(), func(theirs netip.AddrPort) bool { return overlap(own, theirs) }) {
				found = append(found, claim{"the port " + own.String(), by})
			}
		}
	}
	if owner, there := m.contexts[c.Context()]; there && owner == "" {
		found = append(found, claim{"the context " + c.Context(), "your kubeconfig, for something else (--name chooses another)"})
	}
	return found
}

// held returns what of c somebody has on the host at this moment.
func (m machine) held(c Config) []claim {
	var found []claim
	for _, n := range m.networks {
		if c.within(n.prefix) {
			found = append(found, n.claim)
		}
	}
	for _, own := range c.published(true) {
		if m.udpTaken(own) {
			found = append(found, claim{"the port " + own.String() + "/udp", "another process"})
		}
	}
	for _, own := range c.listening() {
		if by := m.portOwner(own); by != "" {
			found = append(found, claim{"the port " + own.String(), by})
		}
	}
	return found
}

func theCluster(dataDir string) string {
	return fmt.Sprintf("the cluster in %[1]s (bonsai --data-dir %[1]s down ends it)", dataDir)
}

// within tells whether p is a part of one of the cluster's networks. A wider route, such as a VPN's 10.0.0.0/8, is no hindrance: the
// cluster's own are more specific.
func (c Config) within(p netip.Prefix) bool {
	return slices.ContainsFunc(c.networks(), func(own netip.Prefix) bool {
		return own.IsValid() && own.Contains(p.Addr()) && p.Bits() >= own.Bits()
	})
}

// describeClaims makes one error per owner that names all it has.
func describeClaims(claims []claim) error {
	var owners []string
	things := map[string][]string{}
	for _, t := range claims {
		if things[t.by] == nil {
			owners = append(owners, t.by)
		}
		if !slices.Contains(things[t.by], t.what) {
			things[t.by] = append(things[t.by], t.what)
		}
	}
	var errs []error
	for _, by := range owners {
		errs = append(errs, fmt.Errorf("taken by %s: %s", by, strings.Join(things[by], ", ")))
	}
	return errors.Join(errs...)
}

// iptablesPrograms write the rules of iptables for the cluster's families.
func (c Config) iptablesPrograms() []string {
	switch c.IPFamily {
	case IPv6:
		return []string{"ip6tables-restore"}
	case Dual:
		return []string{"iptables-restore", "ip6tables-restore"}
	}
	return []string{"iptables-restore"}
}
