package node

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/tracestore"
)

// Config is everything that a node's init knows. It is written to the node's etc/node.json, whose fields are named as
// these.
type Config struct {
	Name string
	// Addresses are the node's on the node networks, and Gateways the host's there, one of each family. There are no
	// gateways if the node has its routes already.
	Addresses []netip.Prefix
	Gateways  []netip.Addr
	// DataDir, BinDir and Mark are the cluster's.
	DataDir, BinDir, Mark string
	// Cgroups are the roots of the cluster's trees. The node's own group in each has its name.
	Cgroups []string `json:",omitempty"`
	// Egress is set if containerd may pull images and pods may ask the host's resolvers.
	Egress bool
	DNSIP  netip.Addr
	// Podnets are the networks of all pods, and ServiceSubnets those of Services.
	Podnets, ServiceSubnets []netip.Prefix
	Server                  string
	// Mirrors, FeatureGates and ComponentFlags are the cluster's; Labels, Taints and Mounts are the node's.
	Mirrors        []plan.Mirror
	OCIRuntime     string   `json:",omitempty"` // the cluster's
	Programs       string   `json:",omitempty"` // the cluster's
	Images         []string // the archives in bin/images that the node may take
	FeatureGates   map[string]bool
	ComponentFlags map[string]map[string]string
	Labels         map[string]string
	Taints         []string
	Mounts         []plan.Mount
	// Containerized is set in a container: the node has its address and a default route, and whatever forwards its
	// packets knows no pods.
	Containerized bool `json:"Contained"`
	// Traces is set if the node leads to the API of traces.
	Traces bool `json:",omitempty"`
	// ForwardsSpans is set if a process of the node sends its spans on: the machine keeps no traces itself.
	ForwardsSpans bool `json:",omitempty"`
	// Joined is set if the node has the machine's network, and Bootstraps if it asks for certificates of its own: on a
	// machine that has no control plane, and so no authority's key.
	Joined     bool `json:",omitempty"`
	Bootstraps bool `json:",omitempty"`
}

// Of returns the configuration of a node of the cluster, without its cgroups. The Keeper adds them before it writes the
// file, since only the supervisor knows where they are. A node in a container enters none.
func Of(c plan.Config, n plan.Node) Config {
	gateways := c.Networks().HostIPs()
	if c.Containerized {
		gateways = nil
	}
	return Config{
		Name: n.Name(), Addresses: c.NodePrefixes(n), Gateways: gateways, ServiceSubnets: c.Networks().Services(),
		Containerized: c.Containerized,
		DataDir:       c.DataDir, BinDir: c.BinDir, Mark: c.Mark(), Egress: c.Egress, DNSIP: c.Networks().DNSIP(),
		Podnets: c.Networks().Pods(), Server: c.Server(),
		Mirrors: c.RegistryMirrors(), OCIRuntime: c.OCIRuntime, Programs: c.Programs, Images: c.LocalImages(),
		FeatureGates:   c.FeatureGates,
		ComponentFlags: c.ComponentFlags, Labels: n.RegisteredLabels(), Taints: n.Taints, Mounts: n.Mounts,
		Traces: c.HasAddon(tracestore.Addon), ForwardsSpans: plan.SendsSpans(c) && c.Joined != nil,
		Joined: c.Joined != nil, Bootstraps: !c.HasControlPlane(),
	}
}

// IPs returns the node's addresses.
func (n *Config) IPs() []netip.Addr {
	var out []netip.Addr
	for _, p := range n.Addresses {
		out = append(out, p.Addr())
	}
	return out
}

// Read reads the file that Write has written.
func Read(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the node's configuration: %w", err)
	}
	var n Config
	if err := json.Unmarshal(data, &n); err != nil {
		return nil, fmt.Errorf("read the node's configuration %s: %w", path, err)
	}
	return &n, nil
}

// path is the file of the node's configuration.
func (n *Config) path() string { return plan.Layout(n.DataDir).Node(n.Name, "etc", "node.json") }

// Write writes the node's configuration into the node's directory, and returns the path of the file.
func (n *Config) Write() (string, error) {
	path := n.path()
	data, err := json.MarshalIndent(n, "", "  ")
	if err == nil {
		err = host.WriteFile(path, data)
	}
	if err != nil {
		return "", fmt.Errorf("write the configuration of node %s: %w", n.Name, err)
	}
	return path, nil
}
