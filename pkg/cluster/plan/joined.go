package plan

import (
	"fmt"
	"net/netip"
)

// Joined describes a machine that is one node of a cluster whose control plane is on another machine. The node uses the
// machine's network; everything else is its own, as for any node.
type Joined struct {
	Server  netip.AddrPort // the API server's, as the cluster advertises it
	Address netip.Addr     // this machine's, by which the cluster reaches the node
}

// nodePorts are the ports of kubelet and kube-proxy that others reach. The node has the machine's network, so they must
// be free on the machine.
var nodePorts = [...]uint16{10250, 10256}

// BootstrapIdentity names the kubeconfig with which a node's kubelet asks for its first certificate.
func BootstrapIdentity(node string) string { return "bootstrap-" + node }

// Identity names the kubeconfig with which this machine's command asks the API server: the administrator's, or on a
// machine that has joined, the kubelet's.
func (c Config) Identity() string {
	if c.Joined != nil {
		return "kubelet-" + c.Nodes[0].Name()
	}
	return Administrator
}

// SeenNodes returns the field selector of the nodes that this machine's command may see. A kubelet may read its own
// Node alone, and the API server refuses a wider list.
func SeenNodes(c Config) string {
	if c.Joined == nil {
		return ""
	}
	return "metadata.name=" + c.Nodes[0].Name()
}

// SeenPods returns what to add to a field selector of pods so that it selects those on SeenNodes.
func SeenPods(c Config) string {
	if c.Joined == nil {
		return ""
	}
	return ",spec.nodeName=" + c.Nodes[0].Name()
}

// CheckControlPlane returns an error on a machine that has joined a cluster, for commands that need the control plane.
func (c Config) CheckControlPlane() error {
	if c.Joined != nil {
		return fmt.Errorf("this machine is a node of the cluster at %s, whose control plane is there", c.Joined.Server)
	}
	return nil
}

// Administrator is the identity of the cluster's user.
const Administrator = "admin"
