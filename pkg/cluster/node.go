package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// NodeConfig is what a node's init needs to know; it is written to the node's etc/node.json.
type NodeConfig struct {
	Name string
	// Addresses are the node's on the node networks, Gateways the host's there, one of each family; none if the node has its routes.
	Addresses []netip.Prefix
	Gateways  []netip.Addr
	// DataDir, BinDir and Mark are the cluster's.
	DataDir, BinDir, Mark string
	// Cgroups are the roots of the cluster's trees; the node's own group there has its name.
	Cgroups []string `json:",omitempty"`
	// Egress: whether containerd may pull images and pods may ask the host's resolvers.
	Egress bool
	DNSIP  netip.Addr
	// Podnets are all pods', ServiceSubnets the Services'.
	Podnets, ServiceSubnets []netip.Prefix
	Server                  string
	// Mirrors, FeatureGates and ComponentFlags are the cluster's, Labels, Taints and Mounts the node's.
	Mirrors        []plan.Mirror
	OCIRuntime     string   `json:",omitempty"` // the cluster's
	Images         []string // the archives in bin/images that the node may take
	FeatureGates   map[string]bool
	ComponentFlags map[string]map[string]string
	Labels         map[string]string
	Taints         []string
	Mounts         []plan.Mount
	// Contained is the cluster's: the node has its address and a default route, and who forwards its packets knows no pods.
	Contained bool
	// Joined: the node has the machine's network, and asks for certificates of its own.
	Joined bool `json:",omitempty"`
}

func nodeConfig(c plan.Config, n plan.Node) NodeConfig {
	gateways := c.Networks().HostIPs()
	if c.Contained {
		gateways = nil
	}
	return NodeConfig{
		Name: n.Name(), Addresses: c.NodePrefixes(n), Gateways: gateways, ServiceSubnets: c.Networks().Services(), Contained: c.Contained,
		DataDir: c.DataDir, BinDir: c.BinDir, Mark: c.Mark(), Egress: c.Egress, DNSIP: c.Networks().DNSIP(), Podnets: c.Networks().Pods(), Server: c.Server(),
		Mirrors: c.RegistryMirrors(), OCIRuntime: c.OCIRuntime, Images: c.LocalImages(), FeatureGates: c.FeatureGates, ComponentFlags: c.ComponentFlags, Labels: n.RegisteredLabels(), Taints: n.Taints, Mounts: n.Mounts, Joined: c.Joined != nil,
	}
}

// ips are the node's addresses.
func (n *NodeConfig) ips() []netip.Addr {
	var out []netip.Addr
	for _, p := range n.Addresses {
		out = append(out, p.Addr())
	}
	return out
}

// nodeProcess is the node's init: this program again, in namespaces of its own. See EnterNode for its standard input.
func nodeProcess(ctx context.Context, c plan.Config, node plan.Node, self string, groups cgroup.Groups) (supervise.Process, error) {
	l, n := c.Layout(), nodeConfig(c, node)
	path, err := writeNode(c, node, groups)
	if err != nil {
		return supervise.Process{}, err
	}
	flags, started := uintptr(syscall.CLONE_NEWNS|syscall.CLONE_NEWUTS|syscall.CLONE_NEWIPC|syscall.CLONE_NEWPID), func(int) error { return groups.Renew(ctx, n.Name, killPatience) }
	if !n.Joined {
		flags |= syscall.CLONE_NEWNET
		started = func(pid int) error {
			return errors.Join(groups.Renew(ctx, n.Name, killPatience), connectNode(ctx, c, n.Name, pid))
		}
	}
	return supervise.Process{
		Name: "node-" + n.Name,
		Argv: []string{self, "node-enter", path},
		Log:  l.Log("node-" + n.Name),
		Attr: syscall.SysProcAttr{Cloneflags: flags}, Started: started,
	}, nil
}

// writeNode writes the file that a node's init reads when it starts, and returns its path.
func writeNode(c plan.Config, node plan.Node, groups cgroup.Groups) (string, error) {
	n := nodeConfig(c, node)
	n.Cgroups = groups.Trees
	path := c.Layout().Node(n.Name, "etc", "node.json")
	data, err := json.MarshalIndent(n, "", "  ")
	if err == nil {
		err = host.WriteFile(path, data)
	}
	if err != nil {
		return "", fmt.Errorf("write the configuration of node %s: %w", n.Name, err)
	}
	return path, nil
}

// ReadNode reads a node's configuration.
func ReadNode(path string) (*NodeConfig, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the node's configuration: %w", err)
	}
	var n NodeConfig
	if err := json.Unmarshal(data, &n); err != nil {
		return nil, fmt.Errorf("read the node's configuration %s: %w", path, err)
	}
	return &n, nil
}
