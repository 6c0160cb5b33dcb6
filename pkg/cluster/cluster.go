// Package cluster runs a whole local cluster of real processes on one machine: it makes the PKI and the kubeconfigs, starts
// and supervises etcd, the control plane and the nodes, loads the local images, installs the add-ons, and takes all of it
// away again.
//
// # Processes
//
// `bonsai up` starts one supervisor in the background. Its children are the control plane, in the host's namespaces, and one
// init process per node. A node is a set of namespaces (network, mount, PID, UTS, IPC, cgroup); its init starts containerd,
// kubelet and kube-proxy in it. Every child dies with its parent, so that ending the supervisor ends the cluster and ending a
// node's init is a power failure of that node: nothing can be left running.
//
// # Network
//
//	host (API server)            10.77.0.1  bonsai-<id> ──┐
//	node n1                      10.77.0.11 eth0        ──┤ bridge in the network namespace bonsai-<id>
//	node n2                      10.77.0.12 eth0        ──┘
//	pods of a node               a /24 of 10.244.0.0/16 behind the node's bridge cni0
//	services                     10.96.0.0/16, known to kube-proxy on the nodes only
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
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
)

// Config says what a cluster is. The zero value is not usable: see Default.
type Config struct {
	// DataDir holds everything the cluster writes: a path as ResolveDataDir returns it. BinDir holds the binaries and, in images/, the local images.
	DataDir string
	BinDir  string
	// Nodes is the number of nodes, 1 to 9: n1, n2, …
	Nodes int
	// Egress lets pods and nodes reach what the host reaches, masqueraded as the host.
	Egress bool
	// RegistryMirror is the URL of a registry that nodes ask for every image, whatever registry its name says; "" means none.
	RegistryMirror string
	// APIPort is the API server's port on the host's address of the node network.
	APIPort int
	// NodeSubnet is a /24; the host is .1 and node i is .10+i. PodSubnet is cut into a /24 per node.
	NodeSubnet, PodSubnet, ServiceSubnet netip.Prefix
	// Context is the name of cluster, user and context in the user's kubeconfig.
	Context string
	// Addons holds the manifests to install, "$NAME" standing for what the cluster fills in.
	Addons fs.FS `json:"-"`
}

// Default returns the configuration of a cluster of one node with its data in dataDir.
func Default(dataDir, binDir string) Config {
	return Config{
		DataDir: dataDir, BinDir: binDir, Nodes: 1, Egress: true, APIPort: 6443, Context: "bonsai",
		NodeSubnet:    netip.MustParsePrefix("10.77.0.0/24"),
		PodSubnet:     netip.MustParsePrefix("10.244.0.0/16"),
		ServiceSubnet: netip.MustParsePrefix("10.96.0.0/16"),
	}
}

// Validate returns all that is wrong with the configuration, naming the flags.
func (c Config) Validate() error {
	var errs []error
	if c.Nodes < 1 || c.Nodes > 9 {
		errs = append(errs, fmt.Errorf("--nodes: must be between 1 and 9, not %d", c.Nodes))
	}
	if !filepath.IsAbs(c.DataDir) || filepath.Clean(c.DataDir) == "/" {
		errs = append(errs, fmt.Errorf("--data-dir: must be an absolute path below /, not %q", c.DataDir))
	}
	if c.APIPort < 1 || c.APIPort > 65535 {
		errs = append(errs, fmt.Errorf("--api-port: must be between 1 and 65535, not %d", c.APIPort))
	}
	if slices.Contains(c.hostPorts()[1:], c.APIPort) {
		errs = append(errs, fmt.Errorf("--api-port: %d is another component's port", c.APIPort))
	}
	if err := checkMirror(c.RegistryMirror); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// HostIP is the host's address on the node network, where the API server listens.
func (c Config) HostIP() netip.Addr { return nth(c.NodeSubnet, 1) }

// NodeIP is the address of node i, counted from 1.
func (c Config) NodeIP(i int) netip.Addr { return nth(c.NodeSubnet, 10+i) }

// ServiceIP is the address of the kubernetes Service, DNSIP that of the cluster's DNS.
func (c Config) ServiceIP() netip.Addr { return nth(c.ServiceSubnet, 1) }

// DNSIP is the address of the cluster's DNS Service.
func (c Config) DNSIP() netip.Addr { return nth(c.ServiceSubnet, 10) }

// LocalServer is the API server's URL for clients on the host, which no address of a cluster that is gone stands in.
func (c Config) LocalServer() string {
	return "https://" + net.JoinHostPort(loopback, strconv.Itoa(c.APIPort))
}

// Server is the API server's URL on the node network.
func (c Config) Server() string {
	return "https://" + netip.AddrPortFrom(c.HostIP(), uint16(c.APIPort)).String()
}

// NodeName is the name of node i, counted from 1.
func NodeName(i int) string { return "n" + strconv.Itoa(i) }

func nth(p netip.Prefix, n int) netip.Addr {
	a := p.Masked().Addr()
	for range n {
		a = a.Next()
	}
	return a
}
