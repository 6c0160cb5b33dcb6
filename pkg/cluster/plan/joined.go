package plan

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Joined describes a machine that has joined a cluster of another machine. It has one node, which uses the machine's
// network; everything else of the node is its own, as for any node. It may also have a control plane.
type Joined struct {
	Server  netip.AddrPort // the API server's, as the cluster advertised it when the machine joined
	Address netip.Addr     // this machine's, by which the cluster reaches the node
	// Gateway is the cluster's first machine, behind which its node network is. It is not set by older versions, which
	// took Server's address.
	Gateway netip.Addr `json:",omitzero"`
	// ControlPlane is set if this machine has a control plane, and InitialCluster has etcd's members when it joined.
	ControlPlane   bool   `json:",omitempty"`
	InitialCluster string `json:",omitempty"`
}

// Through returns the machine behind which the cluster's node network is.
func (j Joined) Through() netip.Addr {
	if j.Gateway.IsValid() {
		return j.Gateway
	}
	return j.Server.Addr()
}

// Peer is one of the control planes of a cluster, each on a machine of its own. API and Etcd are where other machines
// reach its API server and its etcd.
type Peer struct {
	Name      string // its etcd member's
	API, Etcd netip.AddrPort
}

// FirstMember names the etcd member, and so the control plane, of a cluster's first machine. That of another machine
// has the name of its node.
const FirstMember = "bonsai"

// Etcd is the only etcd member of a machine, as others see it.
type Etcd struct {
	Name string
	// PeerURL is where the etcds of other machines reach this one, and ClientURL where their commands do. Without an
	// advertised address nobody does, and they are on loopback.
	PeerURL, ClientURL string
	// Doors are the mappings from the advertised address to etcd's ports on loopback: none before other machines may
	// have control planes.
	Doors []PortMapping
	// Peer is this machine's control plane, if other machines reach it (IsJoinable).
	Peer Peer
}

// Etcd returns the etcd member of this machine.
func (c Config) Etcd() Etcd {
	host := Loopback
	if c.IsJoinable() {
		host = c.AdvertiseAddress.String()
	}
	url := func(port int) string { return "https://" + net.JoinHostPort(host, strconv.Itoa(port)) }
	e := Etcd{Name: FirstMember, PeerURL: url(c.Ports.EtcdPeer), ClientURL: url(c.Ports.EtcdClient)}
	if c.Joined != nil {
		e.Name = c.Nodes[0].Name()
	}
	if c.IsJoinable() {
		e.Peer = Peer{Name: e.Name, API: c.Advertised().Listens(),
			Etcd: netip.AddrPortFrom(c.AdvertiseAddress, uint16(c.Ports.EtcdClient))}
	}
	if c.Extensible && c.IsJoinable() {
		for _, port := range []int{c.Ports.EtcdClient, c.Ports.EtcdPeer} {
			e.Doors = append(e.Doors, PortMapping{Address: c.AdvertiseAddress, HostPort: port, NodePort: port})
		}
	}
	return e
}

// HasControlPlane reports whether this machine has a control plane of the cluster.
func (c Config) HasControlPlane() bool { return c.Joined == nil || c.Joined.ControlPlane }

// Backends returns the API servers between which the balancer of a machine that has joined chooses: the user's own
// balancer before them, if there is one.
func Backends(c Config) []string {
	if c.ControlPlaneEndpoint != "" {
		return []string{c.ControlPlaneEndpoint}
	}
	var all []string
	for _, p := range c.Peers {
		all = append(all, p.API.String())
	}
	if len(all) == 0 {
		all = []string{c.Joined.Server.String()}
	}
	return all
}

// nodePorts are the ports of kubelet and kube-proxy that others reach. The node has the machine's network, so they must
// be free on the machine.
var nodePorts = [...]uint16{10250, 10256}

// BootstrapIdentity names the kubeconfig with which a node's kubelet asks for its first certificate.
func BootstrapIdentity(node string) string { return "bootstrap-" + node }

// Identity names the kubeconfig with which this machine's command asks the API server: the administrator's, or on a
// machine that has joined as a node alone, the kubelet's.
func (c Config) Identity() string {
	if !c.HasControlPlane() {
		return "kubelet-" + c.Nodes[0].Name()
	}
	return Administrator
}

// SeenNodes returns the field selector of the nodes that this machine's command may see. A kubelet may read its own
// Node alone, and the API server refuses a wider list.
func SeenNodes(c Config) string {
	if c.HasControlPlane() {
		return ""
	}
	return "metadata.name=" + c.Nodes[0].Name()
}

// SeenPods returns what to add to a field selector of pods so that it selects those on SeenNodes.
func SeenPods(c Config) string {
	if c.HasControlPlane() {
		return ""
	}
	return ",spec.nodeName=" + c.Nodes[0].Name()
}

// CheckControlPlane returns an error on a machine that has joined a cluster as a node alone, for commands that need the
// control plane.
func (c Config) CheckControlPlane() error {
	if !c.HasControlPlane() {
		return fmt.Errorf("this machine is a node of the cluster at %s, whose control plane is there", c.Joined.Server)
	}
	return nil
}

// Administrator is the identity of the cluster's user.
const Administrator = "admin"
