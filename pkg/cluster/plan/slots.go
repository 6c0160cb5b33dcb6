package plan

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// slots is how many clusters can be on a machine whose addresses and ports were all chosen by Up: the pods'
// networks, counted down
// from 10.244, would meet the services', counted up from 10.96.
const slotCount = 64

// inSlot returns c with what it leaves open filled in: addresses and ports that no cluster in another slot has.
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

// filledFrom returns c with what it leaves open as in old.
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

// machine is what a cluster may collide with, without what is its own.
type Machine struct {
	Clusters []Config      // the others, running or stopped
	Networks []HostNetwork // addresses and routes of the host
	// Of the user's kubeconfig, with the data directory of the cluster that each is for, or "".
	Contexts map[string]string
	// portOwner tells who listens where the cluster would, "" for nobody but the cluster itself.
	PortOwner func(at netip.AddrPort) string
	// udpTaken reports whether somebody has a port of UDP.
	UDPTaken func(at netip.AddrPort) bool
}

// network is an address or a route of the host.
type HostNetwork struct {
	Prefix netip.Prefix
	Claim
}

// claim is something that a cluster needs and somebody else has.
type Claim struct {
	What string // "the address 10.77.0.1/24", …
	By   string // "the cluster in /var/lib/bonsai", "process 12 (etcd)", …
}

// plan returns c with what it leaves open filled in, in the first slot that is free. The error names all that is
// taken of what c
// says, and by whom.
func (m Machine) Plan(c Config) (Config, error) {
	if claims := m.Collisions(c); len(claims) > 0 {
		return c, DescribeClaims(claims)
	}
	for i := range slotCount {
		full := c.InSlot(i) // to look who listens on a port takes longest
		if full.Validate() == nil && len(m.Claimed(full)) == 0 && len(m.held(full)) == 0 {
			return full, nil
		}
	}
	first := c.InSlot(0)
	return c, fmt.Errorf("all %d places for a cluster on this machine are taken, of the first: %w", slotCount,
		errors.Join(first.Validate(), DescribeClaims(m.Collisions(first))))
}

// collisions returns what others have of what c says.
func (m Machine) Collisions(c Config) []Claim { return append(m.Claimed(c), m.held(c)...) }

// claimed returns what of c other clusters and contexts have by what is written down of them.
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

// held returns what of c somebody has on the host at this moment.
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

func DescribeCluster(dataDir string) string {
	return fmt.Sprintf("the cluster in %[1]s (bonsai --data-dir %[1]s down ends it)", dataDir)
}

// describeClaims makes one error per owner that names all it has.
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
