package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Config says what a cluster is. The zero value is not usable: see Default. A port or subnet that is zero is chosen
// by Up.
type Config struct {
	// Name tells the clusters of a user apart: a DNS label of at most 20 characters.
	Name string
	// DataDir holds everything the cluster writes: a path as ResolveDataDir returns it. BinDir holds the binaries
	// and, in images/, the local images.
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
	// OCIRuntime is the program that makes the containers of pods without a RuntimeClass (ociRuntimes), runc if it
	// is empty.
	OCIRuntime string `json:",omitempty"`
	// AdvertiseAddress is this machine's by which other machines reach the API server, to join as nodes (Join): none
	// unless it is set.
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
	// FeatureGates are passed to the components, and so are ComponentFlags, by component and flag without its
	// dashes, after our own.
	FeatureGates   map[string]bool              `json:",omitempty"`
	ComponentFlags map[string]map[string]string `json:",omitempty"`
	// AddonChoices says which add-ons are on or off that by default are not (WithAddon).
	AddonChoices map[string]bool `json:",omitempty"`
	// KubeconfigMode is the mode of the user's kubeconfig, in which the administrator's key is; 0: nobody but its
	// owner may read it.
	KubeconfigMode fs.FileMode `json:",omitempty"`
	// Containerized is set where control planes and nodes are containers that somebody else runs (package
	// containerized).
	Containerized bool `json:"Contained,omitempty"`
	// Addons holds the manifests to install, "$NAME" standing for what the cluster fills in.
	Addons fs.FS `json:"-"`
}

// DefaultName is the name of the cluster that a user has who gives none.
const DefaultName = "bonsai"

// Default returns the configuration of the cluster called DefaultName, of one node with its data in dataDir, as it
// is when it is
// alone on the machine.
func Default(dataDir, binDir string) Config {
	c := Config{Name: DefaultName, DataDir: dataDir, BinDir: binDir, Nodes: NodesUpTo(1), ControlPlanes: 1,
		Egress: true}
	return c.InSlot(0)
}

// Validate returns all that is wrong with the configuration, naming the flags.
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
	if c.IsHighlyAvailable() && c.IPFamily == IPv6 { // they reach pods through the host, which forwards no IPv6
		errs = append(errs, errors.New("--control-planes: several need IPv4 (--ip-family ipv4 or dual)"))
	}
	if c.ControlPlanes != 1 && c.ControlPlanes != MaxControlPlanes {
		errs = append(errs, fmt.Errorf("--control-planes: must be 1 or %d, not %d", MaxControlPlanes, c.ControlPlanes))
	}
	if !filepath.IsAbs(c.DataDir) || filepath.Clean(c.DataDir) == "/" {
		errs = append(errs, fmt.Errorf("--data-dir: must be an absolute path below /, not %q", c.DataDir))
	}
	// They part and quote the options of an overlay file system (mount(8)), which images are.
	if strings.ContainsAny(c.DataDir, ":,\\") {
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
	if err := checkAdvertised(c); err != nil {
		errs = append(errs, fmt.Errorf("--advertise-address: %w", err))
	}
	listening := c.Listening()
	taken := map[bool][]netip.AddrPort{false: listening[:len(listening)-len(c.published(false))]} // by "is UDP"
	named := map[bool][]netip.AddrPort{}
	own := len(c.Mappings()) - len(c.PortMappings) // the first ones
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

// LocalServer is the API server's URL for clients on the host, which no address of a cluster that is gone stands in.
// Of a containerized cluster
// nothing of ours is on the host.
func (c Config) LocalServer() string {
	if c.Containerized || c.Joined != nil {
		return c.Server()
	}
	return "https://" + net.JoinHostPort(c.Networks().Loopback().String(), strconv.Itoa(c.Ports.API))
}

// Server is the API server's URL for nodes.
func (c Config) Server() string {
	if c.Joined != nil {
		return "https://" + c.Joined.Server.String()
	}
	return "https://" + netip.AddrPortFrom(c.Networks().HostIP(), uint16(c.Ports.API)).String()
}
