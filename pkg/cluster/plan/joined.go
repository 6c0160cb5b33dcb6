package plan

import (
	"fmt"
	"net/netip"
)

// Joined says of a machine that it is one node of a cluster whose control plane is on another one. The node has the
// machine's network, and
// all else of its own as any node.
type Joined struct {
	Server  netip.AddrPort // the API server's, as the cluster advertises it
	Address netip.Addr     // this machine's, by which the cluster reaches the node
}

// nodePorts are those of kubelet and kube-proxy that others reach.
var nodePorts = [...]uint16{10250, 10256}

func BootstrapIdentity(node string) string { return "bootstrap-" + node }

// identity is the name of the kubeconfig with which this machine's command asks the API server.
func (c Config) Identity() string {
	if c.Joined != nil {
		return "kubelet-" + c.Nodes[0].Name()
	}
	return Administrator
}

// seenNodes selects the nodes that this machine's command may see: of a machine that has joined, its own.
func SeenNodes(c Config) string {
	if c.Joined == nil {
		return ""
	}
	return "metadata.name=" + c.Nodes[0].Name()
}

// seenPods adds to a selector of pods that they are on those nodes.
func SeenPods(c Config) string {
	if c.Joined == nil {
		return ""
	}
	return ",spec.nodeName=" + c.Nodes[0].Name()
}

// hasControlPlane says why not all can be done here, on a machine that has joined a cluster.
func (c Config) CheckControlPlane() error {
	if c.Joined != nil {
		return fmt.Errorf("this machine is a node of the cluster at %s, whose control plane is there", c.Joined.Server)
	}
	return nil
}

// administrator is the identity of the cluster's user.
const Administrator = "admin"
