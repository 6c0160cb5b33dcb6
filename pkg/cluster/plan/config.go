package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// Config describes a cluster: what its user chose, and the addresses and ports that were chosen for it. It is written
// to cluster.json, whose fields are named as these; a field that is renamed keeps its JSON name, or old clusters lose
// it.
//
// The zero value is not usable (Default). A port or subnet that is zero is still open: Machine.Plan chooses it.
type Config struct {
	// Name distinguishes the clusters of a user: a DNS label of at most 20 characters.
	Name string
	// DataDir holds everything that the cluster writes: a path as datadir.Resolve returns it. BinDir holds the programs
	// and, in images/, the local images.
	DataDir string
	BinDir  string
	// Nodes has 1 to 9 nodes, in the order of their numbers.
	Nodes []Node
	// ControlPlanes is 1, or 3, which survive the loss of one.
	ControlPlanes int
	// Egress lets pods and nodes reach whatever the host reaches, masqueraded as the host.
	Egress bool
	// EncryptSecrets has the API servers encrypt Secrets in etcd by the cluster's keys, unless the user gives them a
	// file (componentflags.EncryptsSecrets). Clusters of versions that knew nothing about it do not have it.
	EncryptSecrets bool `json:",omitempty"`
	// NoTraces is set if the user wants no bonsai-traces (SendsSpans), or the cluster that this machine joined has
	// none. A cluster of a version that knew nothing about it gets one at its next start.
	NoTraces bool `json:",omitempty"`
	// Mirrors are registries that nodes ask in place of those in the names of images.
	Mirrors []Mirror `json:",omitempty"`
	// OCIRuntime is the program that makes the containers of pods without a RuntimeClass (OCIRuntimes); "" is
	// DefaultOCIRuntime.
	OCIRuntime string `json:",omitempty"`
	// Programs says whose containerd, runc, nft and so on run: programs.Machine, or "" for programs.Bundled.
	Programs string `json:",omitempty"`
	// AdvertiseAddress is the address of this machine at which other machines reach the API server, to join as nodes.
	// They cannot if it is not set.
	AdvertiseAddress netip.Addr `json:",omitzero"`
	// ControlPlaneEndpoint is the host and port of a load balancer or name of the user's own before the API servers.
	ControlPlaneEndpoint string `json:",omitempty"`
	// Extensible is set once other machines may have control planes: etcd's ports are open to them.
	Extensible bool `json:",omitempty"`
	// Peers are the control planes of all machines, if other machines may have some. They are in a file of their own,
	// which the supervisor writes while commands may write the configuration (datadir.SavePeers).
	Peers []Peer `json:"-"`
	// Joined is set on a machine that has joined a cluster: Nodes has its node alone.
	Joined *Joined `json:",omitempty"`
	// Ports are the control plane's ports on the host.
	Ports Ports
	// PortMappings are the node ports that are published on the host.
	PortMappings []PortMapping `json:",omitempty"`
	// IPFamily is the family of the addresses of nodes, pods and Services. The networks of IPv6 follow from those of
	// IPv4 (Networks).
	IPFamily IPFamily `json:",omitempty"`
	// NodeSubnet has the host at .1 and node i at .10+i. PodSubnet is cut into a /24 per node.
	NodeSubnet, PodSubnet, ServiceSubnet netip.Prefix
	// FeatureGates are passed to the components. ComponentFlags are too, by component and by flag without its dashes;
	// they come after our own flags.
	FeatureGates   map[string]bool              `json:",omitempty"`
	ComponentFlags map[string]map[string]string `json:",omitempty"`
	// AddonChoices has the add-ons that are not as they are by default (WithAddon).
	AddonChoices map[string]bool `json:",omitempty"`
	// KubeconfigMode is the mode of the user's kubeconfig, which has the administrator's key; 0: only its owner may
	// read it.
	KubeconfigMode fs.FileMode `json:",omitempty"`
	// Containerized is set where control planes and nodes are containers that somebody else runs (package
	// containerized).
	Containerized bool `json:"Contained,omitempty"`
	// Addons holds the manifests to install. "$NAME" in them stands for a value of the cluster.
	Addons fs.FS `json:"-"`
}

// DefaultName is the name of a cluster whose user gives none.
const DefaultName = "bonsai"

// Default returns the cluster DefaultName of one node with its data in dataDir, with the addresses and ports that it
// has if it is alone on the machine.
func Default(dataDir, binDir string) Config {
	c := Config{Name: DefaultName, DataDir: dataDir, BinDir: binDir, Nodes: NodesUpTo(1), ControlPlanes: 1,
		Egress: true, EncryptSecrets: true}
	return c.InSlot(0)
}

// Validate returns everything that is wrong with the configuration. Each error names the flag.
func (c Config) Validate() error {
	var errs []error
	if err := CheckName(c.Name); err != nil {
		errs = append(errs, fmt.Errorf("--name: %w", err))
	}
	if m := c.KubeconfigMode; m != 0 && (m&^0o777 != 0 || m&0o600 != 0o600) {
		errs = append(errs, fmt.Errorf(
			"--kubeconfig-mode: %#o must be from 0600 to 0777, so that its owner can use the file", uint32(m)))
	}
	if err := checkNodes(len(c.Nodes)); err != nil {
		errs = append(errs, fmt.Errorf("--nodes: %w", err))
	}
	if c.IsHighlyAvailable() && c.IPFamily == IPv6 { // members reach pods through the host, which forwards no IPv6
		errs = append(errs, errors.New("--control-planes: several need IPv4 (--ip-family ipv4 or dual)"))
	}
	if c.ControlPlanes != 1 && c.ControlPlanes != MaxControlPlanes {
		errs = append(errs, fmt.Errorf("--control-planes: must be 1 or %d, not %d", MaxControlPlanes, c.ControlPlanes))
	}
	if err := c.Layout().Check(); err != nil {
		errs = append(errs, fmt.Errorf("--data-dir: %w", err))
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
	if err := checkAdvertised(c); err != nil {
		errs = append(errs, fmt.Errorf("--advertise-address: %w", err))
	}
	if err := checkEndpoint(c); err != nil {
		errs = append(errs, fmt.Errorf("--control-plane-endpoint: %w", err))
	}
	listening := c.Listening()
	taken := map[bool][]netip.AddrPort{false: listening[:len(listening)-len(c.published(false))]} // by "is UDP"
	named := map[bool][]netip.AddrPort{}
	own := len(c.Mappings()) - len(c.PortMappings) // the cluster's own mappings come first
	for i, m := range c.Mappings() {
		if err := m.Check(); err != nil {
			errs = append(errs, fmt.Errorf("--port: %w", err))
		}
		overlaps := func(other netip.AddrPort) bool { return overlap(other, m.Listens()) }
		switch {
		case slices.ContainsFunc(taken[m.UDP], overlaps):
			errs = append(errs, fmt.Errorf("--port: %s is taken by the cluster itself", m.Listens()))
		case slices.ContainsFunc(named[m.UDP], overlaps):
			errs = append(errs, fmt.Errorf("--port: %s is given twice", m.Listens()))
		}
		if i < own {
			taken[m.UDP] = append(taken[m.UDP], m.Listens())
		} else {
			named[m.UDP] = append(named[m.UDP], m.Listens())
		}
	}
	if c.HasAddon(registryAddon) && !c.HasAddon(storageAddon) {
		errs = append(errs, fmt.Errorf("--addons: %s needs %s, for the images", registryAddon, storageAddon))
	}
	for _, m := range c.Mirrors {
		if err := m.Check(); err != nil {
			errs = append(errs, fmt.Errorf("--registry-mirror: %w", err))
		}
	}
	return errors.Join(append(errs, c.Networks().Check()...)...)
}

// Context is the name of cluster, user and context in the user's kubeconfig.
func (c Config) Context() string {
	if c.Name == DefaultName {
		return DefaultName
	}
	return markPrefix + c.Name
}

// LocalServer returns the API server's URL for clients on the host. It is a loopback address: a client that still has
// it when the cluster is gone finds a closed port, and not whatever has the cluster's address by then. A containerized
// cluster, whose programs are not on the host, has no such port, so it is Server for that.
func (c Config) LocalServer() string {
	if c.Containerized || c.Joined != nil && c.Ports.API == 0 {
		return c.Server()
	}
	return "https://" + net.JoinHostPort(c.Networks().Loopback().String(), strconv.Itoa(c.Ports.API))
}

// Server returns the API server's URL for nodes. On a machine that has joined it is that of the balancer on loopback,
// which leads to any control plane that lives.
func (c Config) Server() string {
	switch {
	case c.Joined != nil && c.Ports.API == 0: // nobody has chosen the balancer's port yet (Machine.PlanJoined)
		return "https://" + c.Joined.Server.String()
	case c.Joined != nil:
		return c.LocalServer()
	}
	return "https://" + netip.AddrPortFrom(c.Networks().HostIP(), uint16(c.Ports.API)).String()
}
