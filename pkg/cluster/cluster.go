// Package cluster runs a whole local cluster of real processes on one machine: it makes the PKI and the kubeconfigs, starts
// and supervises etcd, the control plane and the nodes, loads the local images, installs the add-ons, and takes all of it
// away again.
//
// # Processes
//
// `bonsai up` starts one supervisor in the background. Its children are the control plane, in the host's namespaces, and one
// init process per node. Of several control planes, each is in a network namespace of its own, and the host's child is a balancer
// (package balancer) before their API servers. A node is a set of namespaces (network, mount, PID, UTS, IPC, cgroup); its init starts containerd,
// kubelet and kube-proxy in it. Every child dies with its parent, so that ending the supervisor ends the cluster and ending a
// node's init is a power failure of that node: nothing can be left running.
//
// # Network
//
//	host (API server)            10.77.0.1  bonsai-<id> ──┐
//	control planes cp1, cp2, …   10.77.0.2  eth0        ──┤ (if there are several)
//	node n1                      10.77.0.11 eth0        ──┤ bridge in the network namespace bonsai-<id>
//	node n2                      10.77.0.12 eth0        ──┘
//	pods of a node               a /24 of 10.244.0.0/16 behind the node's bridge cni0
//	services                     10.96.0.0/16, known to kube-proxy on the nodes only
//
// With --ip-family ipv6 or dual the same things have addresses of fd00::/16, in which those of IPv4 stand (beside): the nodes
// fd00:b05a:a4d::/64, the pods a /80 each of fd00:b05b:af4::/64, the services fd00:b05c:a60::/108. They are known on this machine only.
//
// These are the first cluster's; each further one on the machine has the next place of addresses and ports (see slot).
//
// The bridge lives in a namespace of its own so that the host's packet filter (Docker's "FORWARD DROP") never sees what nodes
// say to each other. While the cluster is up, unreachable routes keep packets for these networks on the machine; the
// administrator's kubeconfig leads to the API server by loopback, so that a client that still has it when the cluster is gone
// finds a closed port, and nothing has to stay on the host for its sake.
//
// # Owners
//
// Everything on the host that a cluster makes outside its data directory carries its mark, bonsai-<id>, which follows from the
// data directory's path: the link and its rules, the network namespace, the packet rules' table, the cgroups that hold its
// processes, the routes (their metric is the id), the user's kubeconfig context (it names the data directory). A cluster removes
// what carries its own mark and nothing else, and does so before every start and at every end, however its last life ended.
package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Config says what a cluster is. The zero value is not usable: see Default. A port or subnet that is zero is chosen by Up.
type Config struct {
	// Name tells the clusters of a user apart: a DNS label of at most 20 characters.
	Name string
	// DataDir holds everything the cluster writes: a path as ResolveDataDir returns it. BinDir holds the binaries and, in images/, the local images.
	DataDir string
	BinDir  string
	// Nodes has 1 to 9 nodes, in the order of their numbers.
	Nodes []Node
	// ControlPlanes is how many there are: 1, or 3 of which one may fail.
	ControlPlanes int
	// Egress lets pods and nodes reach what the host reaches, masqueraded as the host.
	Egress bool
	// Mirrors are the registries that nodes ask instead of those that images name.
	Mirrors []Mirror `json:",omitempty"`
	// OCIRuntime is the program that makes the containers of pods without a RuntimeClass (ociRuntimes), runc if it is empty.
	OCIRuntime string `json:",omitempty"`
	// AdvertiseAddress is this machine's by which other machines reach the API server, to join as nodes (Join): none unless it is set.
	AdvertiseAddress netip.Addr `json:",omitzero"`
	// Joined is set where the cluster's control plane is on another machine, and this one is the only one of Nodes.
	Joined *Joined `json:",omitempty"`
	// Ports are the control plane's on the host.
	Ports Ports
	// PortMappings are the node ports that are published on the host.
	PortMappings []PortMapping `json:",omitempty"`
	// IPFamily is that of nodes, pods and Services. The networks of IPv6 follow from the following (NodeSubnets, …).
	IPFamily IPFamily `json:",omitempty"`
	// NodeSubnet holds the host at .1 and node i at .10+i. PodSubnet is cut into a /24 per node.
	NodeSubnet, PodSubnet, ServiceSubnet netip.Prefix
	// FeatureGates are passed to the components, and so are ComponentFlags, by component and flag without its dashes, after our own.
	FeatureGates   map[string]bool              `json:",omitempty"`
	ComponentFlags map[string]map[string]string `json:",omitempty"`
	// AddonChoices says which add-ons are on or off that by default are not (WithAddon).
	AddonChoices map[string]bool `json:",omitempty"`
	// KubeconfigMode is the mode of the user's kubeconfig, in which the administrator's key is; 0: nobody but its owner may read it.
	KubeconfigMode fs.FileMode `json:",omitempty"`
	// Contained is set where control planes and nodes are containers that somebody else runs (NewContained).
	Contained bool `json:",omitempty"`
	// Addons holds the manifests to install, "$NAME" standing for what the cluster fills in.
	Addons fs.FS `json:"-"`
}

// Node is one node of a cluster.
type Node struct {
	Number int // 1 to 9, its name and address
	// Hostname is the name of one that has joined; the others are called by their numbers.
	Hostname string            `json:",omitempty"`
	Labels   map[string]string `json:",omitempty"`
	// Taints are those that it has, beside others' that somebody else set, as key=value:effect.
	Taints []string `json:",omitempty"`
	Mounts []Mount  `json:",omitempty"`
}

// Mount shows a directory or file of the host at a path in a node.
type Mount struct {
	HostPath, NodePath string
	ReadOnly           bool `json:",omitempty"`
}

// Ports are the TCP ports of a control plane: the API server's on the host's address of the node network and, for the user, on
// loopback; the others on loopback.
type Ports struct {
	API, EtcdClient, EtcdPeer, ControllerManager, Scheduler int
}

// maxNodes is how many nodes a cluster may have: their numbers have one digit.
const maxNodes = 9

// DefaultName is the name of the cluster that a user has who gives none.
const DefaultName = "bonsai"

// Default returns the configuration of the cluster called DefaultName, of one node with its data in dataDir, as it is when it is
// alone on the machine.
func Default(dataDir, binDir string) Config {
	c := Config{Name: DefaultName, DataDir: dataDir, BinDir: binDir, Nodes: nodesUpTo(1), ControlPlanes: 1, Egress: true}
	return c.inSlot(0)
}

// nodesUpTo returns the nodes 1 to n, without labels, taints and mounts.
func nodesUpTo(n int) []Node {
	var nodes []Node
	for i := 1; i <= n; i++ {
		nodes = append(nodes, Node{Number: i})
	}
	return nodes
}

// WithNodes returns c with n nodes: of those it has, the first ones stay as they are.
func (c Config) WithNodes(n int) (Config, error) {
	if err := checkNodes(n); err != nil {
		return c, err
	}
	nodes := nodesUpTo(n)
	for i := range nodes {
		if i < len(c.Nodes) {
			nodes[i] = c.Nodes[i]
		}
	}
	for i := len(c.Nodes); i < n; i++ {
		nodes[i] = Node{Number: freeNumber(nodes[:i])}
	}
	c.Nodes = nodes
	return c, nil
}

// checkNodes returns what is wrong with a number of nodes.
func checkNodes(n int) error {
	if n < 1 || n > maxNodes {
		return fmt.Errorf("must be between 1 and %d, not %d", maxNodes, n)
	}
	return nil
}

// freeNumber is the lowest number that none of the nodes has.
func freeNumber(nodes []Node) int {
	for number := 1; ; number++ {
		if !slices.ContainsFunc(nodes, func(n Node) bool { return n.Number == number }) {
			return number
		}
	}
}

// Validate returns all that is wrong with the configuration, naming the flags.
func (c Config) Validate() error {
	var errs []error
	if err := checkName(c.Name); err != nil {
		errs = append(errs, fmt.Errorf("--name: %w", err))
	}
	if m := c.KubeconfigMode; m != 0 && (m&^0o777 != 0 || m&0o600 != 0o600) {
		errs = append(errs, fmt.Errorf("--kubeconfig-mode: %#o must be from 0600 to 0777, so that its owner can use the file", uint32(m)))
	}
	if err := checkNodes(len(c.Nodes)); err != nil {
		errs = append(errs, fmt.Errorf("--nodes: %w", err))
	}
	if c.highlyAvailable() && c.IPFamily == IPv6 { // they reach pods through the host, which forwards no IPv6
		errs = append(errs, errors.New("--control-planes: several need IPv4 (--ip-family ipv4 or dual)"))
	}
	if c.ControlPlanes != 1 && c.ControlPlanes != maxControlPlanes {
		errs = append(errs, fmt.Errorf("--control-planes: must be 1 or %d, not %d", maxControlPlanes, c.ControlPlanes))
	}
	if !filepath.IsAbs(c.DataDir) || filepath.Clean(c.DataDir) == "/" {
		errs = append(errs, fmt.Errorf("--data-dir: must be an absolute path below /, not %q", c.DataDir))
	}
	if strings.ContainsAny(c.DataDir, ":,\\") { // they part and quote the options of an overlay file system (mount(8)), which images are
		errs = append(errs, fmt.Errorf("--data-dir: must have no colon, comma or backslash, not %q", c.DataDir))
	}
	if !slices.Contains([]IPFamily{IPv4, IPv6, Dual}, c.IPFamily) {
		errs = append(errs, fmt.Errorf("--ip-family: must be ipv4, ipv6 or dual, not %q", c.IPFamily))
	}
	if c.Ports.API < 0 || c.Ports.API > 65535 {
		errs = append(errs, fmt.Errorf("--api-port: must be between 1 and 65535, not %d", c.Ports.API))
	}
	if c.Ports.API != 0 && slices.Contains(c.Ports.onLoopback()[1:], c.Ports.API) {
		errs = append(errs, fmt.Errorf("--api-port: %d is another component's port", c.Ports.API))
	}
	if err := c.checkAdvertised(); err != nil {
		errs = append(errs, fmt.Errorf("--advertise-address: %w", err))
	}
	listening := c.listening()
	taken := map[bool][]netip.AddrPort{false: listening[:len(listening)-len(c.published(false))]} // by "is UDP"
	named := map[bool][]netip.AddrPort{}
	own := len(c.mappings()) - len(c.PortMappings) // the first ones
	for i, m := range c.mappings() {
		if err := m.check(); err != nil {
			errs = append(errs, fmt.Errorf("--port: %w", err))
		}
		overlaps := func(other netip.AddrPort) bool { return overlap(other, m.listens()) }
		switch {
		case slices.ContainsFunc(taken[m.UDP], overlaps):
			errs = append(errs, fmt.Errorf("--port: %s is taken by the cluster itself", m.listens()))
		case slices.ContainsFunc(named[m.UDP], overlaps):
			errs = append(errs, fmt.Errorf("--port: %s is given twice", m.listens()))
		}
		if i < own {
			taken[m.UDP] = append(taken[m.UDP], m.listens())
		} else {
			named[m.UDP] = append(named[m.UDP], m.listens())
		}
	}
	if c.hasAddon(registryAddon) && !c.hasAddon(storageAddon) {
		errs = append(errs, fmt.Errorf("--addons: %s needs %s, for the images", registryAddon, storageAddon))
	}
	for _, m := range c.Mirrors {
		if err := m.check(); err != nil {
			errs = append(errs, fmt.Errorf("--registry-mirror: %w", err))
		}
	}
	return errors.Join(append(errs, c.checkSubnets()...)...)
}

// checkName returns what is wrong with a cluster's name.
func checkName(name string) error {
	const longest = 20
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > longest {
		return fmt.Errorf("%q must be at most %d lower-case letters, digits and dashes, as in dev-1", name, longest)
	}
	return nil
}

// checkSubnets returns what is wrong with the subnets that are set.
func (c Config) checkSubnets() []error {
	var errs []error
	subnets := c.subnets()
	for i, s := range subnets {
		if !s.prefix.IsValid() {
			continue
		}
		if !s.prefix.Addr().Is4() || s.prefix != s.prefix.Masked() || s.prefix.Bits() < s.widest || s.prefix.Bits() > s.narrowest {
			errs = append(errs, fmt.Errorf("%s: must be an IPv4 network from /%d to /%d, not %s", s.name, s.widest, s.narrowest, s.prefix))
		}
		for _, other := range subnets[:i] {
			if other.prefix.IsValid() && other.prefix.Overlaps(s.prefix) {
				errs = append(errs, fmt.Errorf("%s: %s overlaps %s", s.name, s.prefix, other.name))
			}
		}
	}
	return errs
}

// subnet is one of the cluster's networks, with the prefix lengths that it may have.
type subnet struct {
	name              string
	prefix            netip.Prefix
	widest, narrowest int
}

// subnets lists the cluster's networks: of nodes with room for the host and nine nodes, of pods with a /24 for each node, and of
// services as kube-apiserver takes them, with room for the address of DNS.
func (c Config) subnets() []subnet {
	return []subnet{{"nodeSubnet", c.NodeSubnet, 8, 27}, {"podSubnet", c.PodSubnet, 8, 20}, {"serviceSubnet", c.ServiceSubnet, 12, 28}}
}

// Context is the name of cluster, user and context in the user's kubeconfig.
func (c Config) Context() string {
	if c.Name == DefaultName {
		return DefaultName
	}
	return markPrefix + c.Name
}

// hasNode tells whether a node of that name is one of the cluster's.
func (c Config) hasNode(name string) bool {
	return slices.ContainsFunc(c.Nodes, func(n Node) bool { return n.Name() == name })
}

// HostIPs are the host's addresses on the node networks; the API server or, if there are several, the balancer before them listens at
// HostIP, the first.
func (c Config) HostIPs() []netip.Addr { return addresses(c.NodeSubnets(), 1) }

// HostIP is the first of HostIPs.
func (c Config) HostIP() netip.Addr { return c.HostIPs()[0] }

// NodeIPs are the addresses of a node.
func (c Config) NodeIPs(n Node) []netip.Addr {
	if c.Joined != nil {
		return []netip.Addr{c.Joined.Address}
	}
	return addresses(c.NodeSubnets(), 10+n.Number)
}

// NodeIP is the first of NodeIPs.
func (c Config) NodeIP(n Node) netip.Addr { return c.NodeIPs(n)[0] }

// ServiceIP is the address of the kubernetes Service.
func (c Config) ServiceIP() netip.Addr { return nth(c.ServiceSubnets()[0], 1) }

// DNSIP is the address of the cluster's DNS Service by which pods ask it.
func (c Config) DNSIP() netip.Addr { return nth(c.ServiceSubnets()[0], 10) }

// loopback is where this machine's own clients reach the API server: an address of the family that it listens at.
func (c Config) loopback() netip.Addr {
	if c.IPFamily == IPv6 {
		return netip.IPv6Loopback()
	}
	return netip.MustParseAddr(loopback)
}

// LocalServer is the API server's URL for clients on the host, which no address of a cluster that is gone stands in. Of a contained cluster
// nothing of ours is on the host.
func (c Config) LocalServer() string {
	if c.Contained || c.Joined != nil {
		return c.Server()
	}
	return "https://" + net.JoinHostPort(c.loopback().String(), strconv.Itoa(c.Ports.API))
}

// Server is the API server's URL for nodes.
func (c Config) Server() string {
	if c.Joined != nil {
		return "https://" + c.Joined.Server.String()
	}
	return "https://" + netip.AddrPortFrom(c.HostIP(), uint16(c.Ports.API)).String()
}

// Name is the node's name in the cluster.
func (n Node) Name() string { return cmp.Or(n.Hostname, "n"+strconv.Itoa(n.Number)) }

func nth(p netip.Prefix, n int) netip.Addr {
	a := p.Masked().Addr()
	for range n {
		a = a.Next()
	}
	return a
}
