package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"bonsai/api/nodelabels"
)

// Node is one node of a cluster.
type Node struct {
	Number int // 1 to 9, its name and address
	// Hostname is the name of a node that has joined; the names of others follow from their numbers.
	Hostname string            `json:",omitempty"`
	Labels   map[string]string `json:",omitempty"`
	// Taints are those of the configuration, as key=value:effect. A node may have more, which somebody else set.
	Taints []string `json:",omitempty"`
	Mounts []Mount  `json:",omitempty"`
}

// MaxNodes is the largest number of nodes. A node's number has one digit.
const MaxNodes = 9

// NodesUpTo returns the nodes 1 to n, without labels, taints and mounts.
func NodesUpTo(n int) []Node {
	var nodes []Node
	for i := 1; i <= n; i++ {
		nodes = append(nodes, Node{Number: i})
	}
	return nodes
}

// WithNodes returns c with n nodes. Its first nodes stay as they are; new ones get the lowest free numbers.
func (c Config) WithNodes(n int) (Config, error) {
	if err := checkNodes(n); err != nil {
		return c, err
	}
	nodes := NodesUpTo(n)
	for i := range nodes {
		if i < len(c.Nodes) {
			nodes[i] = c.Nodes[i]
		}
	}
	for i := len(c.Nodes); i < n; i++ {
		nodes[i] = Node{Number: FreeNumber(nodes[:i])}
	}
	c.Nodes = nodes
	return c, nil
}

// checkNodes returns what is wrong with a number of nodes.
func checkNodes(n int) error {
	if n < 1 || n > MaxNodes {
		return fmt.Errorf("must be between 1 and %d, not %d", MaxNodes, n)
	}
	return nil
}

// FreeNumber returns the lowest number that none of the nodes has.
func FreeNumber(nodes []Node) int {
	for number := 1; ; number++ {
		if !slices.ContainsFunc(nodes, func(n Node) bool { return n.Number == number }) {
			return number
		}
	}
}

// HasNode reports whether the cluster has a node of that name.
func (c Config) HasNode(name string) bool {
	return slices.ContainsFunc(c.Nodes, func(n Node) bool { return n.Name() == name })
}

// Name is the node's name in the cluster.
func (n Node) Name() string { return cmp.Or(n.Hostname, "n"+strconv.Itoa(n.Number)) }

// NodeNames returns the names of the nodes in the order of their numbers.
func (c Config) NodeNames() []string {
	var names []string
	for _, n := range c.Nodes {
		names = append(names, n.Name())
	}
	return names
}

// NodePrefixes returns the addresses of a node with the sizes of their networks.
func (c Config) NodePrefixes(n Node) []netip.Prefix {
	if c.Joined != nil {
		return []netip.Prefix{netip.PrefixFrom(c.Joined.Address, 32)}
	}
	var out []netip.Prefix
	for _, p := range c.Networks().Nodes() {
		out = append(out, netip.PrefixFrom(Nth(p, 10+n.Number), p.Bits()))
	}
	return out
}

// NodeIPs returns the addresses of a node.
func (c Config) NodeIPs(n Node) []netip.Addr {
	if c.Joined != nil {
		return []netip.Addr{c.Joined.Address}
	}
	return nthOfEach(c.Networks().Nodes(), 10+n.Number)
}

// NodeIP is the first of NodeIPs.
func (c Config) NodeIP(n Node) netip.Addr { return c.NodeIPs(n)[0] }

// RegisteredLabels returns the labels that the kubelet gives a new node, so that pods which select them find the node
// from the first moment. NodeRestriction refuses the others to a kubelet: the administrator sets these afterwards
// (client.DescribeNodes).
func (n Node) RegisteredLabels() map[string]string {
	labels := maps.Clone(n.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return !nodelabels.MayRegister(key) })
	return labels
}

// CheckJoinedLabels refuses labels that only the cluster's administrator may set: on a machine that joins there is no
// administrator's kubeconfig.
func CheckJoinedLabels(labels map[string]string) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !nodelabels.MayRegister(key) {
			errs = append(errs, fmt.Errorf(
				"--labels: a node may not give itself %s: join without it, then run on the cluster's "+
					"machine: kubectl label node NAME %s=%s", key, key, labels[key]))
		}
	}
	return errors.Join(errs...)
}
