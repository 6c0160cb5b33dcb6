package plan

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// slotCount is the number of clusters that fit on a machine if all their addresses and ports are chosen for them. With
// more, the networks of pods, counted down from 10.244, would meet those of Services, counted up from 10.96.
const slotCount = 64

// InSlot returns c with everything that it leaves open set to the addresses and ports of slot i, which no cluster in
// another slot has.
func (c Config) InSlot(i int) Config {
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
	for port, first := range map[*int]int{&c.Ports.API: 6443, &c.Ports.EtcdClient: 2379, &c.Ports.EtcdPeer: 2380,
		&c.Ports.ControllerManager: 10257, &c.Ports.Scheduler: 10259} {
		if *port == 0 {
			*port = first + 100*i
		}
	}
	return c
}

// FilledFrom returns c with everything that it leaves open as in old.
func (c Config) FilledFrom(old Config) Config {
	for own, before := range map[*netip.Prefix]netip.Prefix{&c.NodeSubnet: old.NodeSubnet, &c.PodSubnet: old.PodSubnet,
		&c.ServiceSubnet: old.ServiceSubnet} {
		if !own.IsValid() {
			*own = before
		}
	}
	for own, before := range map[*int]int{&c.Ports.API: old.Ports.API, &c.Ports.EtcdClient: old.Ports.EtcdClient,
		&c.Ports.EtcdPeer:          old.Ports.EtcdPeer,
		&c.Ports.ControllerManager: old.Ports.ControllerManager, &c.Ports.Scheduler: old.Ports.Scheduler} {
		if *own == 0 {
			*own = before
		}
	}
	return c
}

// Machine has everything that a new cluster may collide with. The cluster's own things are not in it.
type Machine struct {
	Clusters []Config      // the others, running or stopped
	Networks []HostNetwork // addresses and routes of the host
	// Contexts are those of the user's kubeconfig, each with the data directory of the cluster that it is for, or "".
	Contexts map[string]string
	// PortOwner names what listens at a TCP address where the cluster would, "" if nothing does except the cluster
	// itself. It may take seconds.
	PortOwner func(at netip.AddrPort) string
	// UDPTaken reports whether something has a UDP port.
	UDPTaken func(at netip.AddrPort) bool
}

// HostNetwork is an address or a route of the host.
type HostNetwork struct {
	Prefix netip.Prefix
	Claim
}

// Claim is something that a cluster needs and that has another owner.
type Claim struct {
	What string // "the address 10.77.0.1/24", …
	By   string // "the cluster in /var/lib/bonsai", "process 12 (etcd)", …
}

// Plan returns c with everything that it leaves open chosen, from the first slot that is free. If what c names itself
// is taken, the error lists all of it with its owners.
func (m Machine) Plan(c Config) (Config, error) {
	if claims := m.Collisions(c); len(claims) > 0 {
		return c, DescribeClaims(claims)
	}
	for i := range slotCount {
		full := c.InSlot(i) // held comes last: finding the owner of a port takes longest
		if full.Validate() == nil && len(m.Claimed(full)) == 0 && len(m.held(full)) == 0 {
			return full, nil
		}
	}
	first := c.InSlot(0)
	return c, fmt.Errorf("all %d places for a cluster on this machine are taken, of the first: %w", slotCount,
		errors.Join(first.Validate(), DescribeClaims(m.Collisions(first))))
}

// PlanJoined returns c, which is a machine's that joins, with the first port of loopback for its balancer that is free.
// A control plane has its ports already.
func (m Machine) PlanJoined(c Config) (Config, error) {
	if c.Ports.API == 0 {
		for i := range slotCount {
			at := netip.AddrPortFrom(netip.MustParseAddr(Loopback), uint16(Default("/", "").InSlot(0).Ports.API+100*i))
			others := func(other Config) bool { return slices.Contains(other.Listening(), at) }
			if !slices.ContainsFunc(m.Clusters, others) && m.PortOwner(at) == "" {
				c.Ports.API = int(at.Port())
				break
			}
		}
	}
	if claims := m.Collisions(c); len(claims) > 0 {
		return c, DescribeClaims(claims)
	}
	return c, nil
}

// Collisions returns everything that c names and others have.
func (m Machine) Collisions(c Config) []Claim { return append(m.Claimed(c), m.held(c)...) }

// Claimed returns what of c other clusters and contexts have, as far as that is written down: also stopped clusters
// keep their addresses.
func (m Machine) Claimed(c Config) []Claim {
	var found []Claim
	for _, other := range m.Clusters {
		by := DescribeCluster(other.DataDir)
		if other.Name == c.Name {
			found = append(found, Claim{"the name " + c.Name, by})
		}
		for _, own := range c.Networks().list() {
			for _, theirs := range other.Networks().list() {
				if own.prefix.IsValid() && theirs.prefix.IsValid() && own.prefix.Overlaps(theirs.prefix) {
					found = append(found, Claim{"the network " + theirs.prefix.String(), by})
				}
			}
		}
		for _, own := range c.published(true) {
			if slices.ContainsFunc(other.published(true), func(theirs netip.AddrPort) bool {
				return overlap(own, theirs)
			}) {
				found = append(found, Claim{"the port " + own.String() + "/udp", by})
			}
		}
		for _, own := range c.Listening() {
			if slices.ContainsFunc(other.Listening(), func(theirs netip.AddrPort) bool {
				return overlap(own, theirs)
			}) {
				found = append(found, Claim{"the port " + own.String(), by})
			}
		}
	}
	if owner, there := m.Contexts[c.Context()]; there && owner == "" {
		found = append(found, Claim{"the context " + c.Context(),
			"your kubeconfig, for something else (--name chooses another)"})
	}
	return found
}

// held returns what of c is in use on the host at this moment.
func (m Machine) held(c Config) []Claim {
	var found []Claim
	for _, n := range m.Networks {
		if c.Networks().Within(n.Prefix) {
			found = append(found, n.Claim)
		}
	}
	for _, own := range c.published(true) {
		if m.UDPTaken(own) {
			found = append(found, Claim{"the port " + own.String() + "/udp", "another process"})
		}
	}
	for _, own := range c.Listening() {
		if by := m.PortOwner(own); by != "" {
			found = append(found, Claim{"the port " + own.String(), by})
		}
	}
	return found
}

// DescribeCluster names a cluster in a message, with the command that ends it.
func DescribeCluster(dataDir string) string {
	return fmt.Sprintf("the cluster in %[1]s (bonsai --data-dir %[1]s down ends it)", dataDir)
}

// DescribeClaims returns one error per owner, which lists everything that it has.
func DescribeClaims(claims []Claim) error {
	var owners []string
	things := map[string][]string{}
	for _, t := range claims {
		if things[t.By] == nil {
			owners = append(owners, t.By)
		}
		if !slices.Contains(things[t.By], t.What) {
			things[t.By] = append(things[t.By], t.What)
		}
	}
	var errs []error
	for _, by := range owners {
		errs = append(errs, fmt.Errorf("taken by %s: %s", by, strings.Join(things[by], ", ")))
	}
	return errors.Join(errs...)
}
