package join

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Complete returns c, which has a name and directories, with the settings of the cluster and with this machine as its
// only node. It writes nothing. What the cluster says is checked before it becomes routes and rules of this machine.
func (d *Cluster) Complete(ctx context.Context, c plan.Config, r Request) (plan.Config, error) {
	facts, err := d.facts(ctx, r.token)
	if err != nil {
		return c, err
	}
	c.NodeSubnet, c.PodSubnet, c.ServiceSubnet, c.FeatureGates, c.Mirrors = facts.NodeSubnet, facts.PodSubnet,
		facts.ServiceSubnet, facts.FeatureGates, facts.Mirrors
	// Nodes on other machines need IPv4 and egress (plan.Config.Validate), and have no control plane with ports.
	c.IPFamily, c.Egress, c.Ports = plan.IPv4, true, plan.Ports{}
	if err := errors.Join(c.Networks().Check()...); err != nil || !c.NodeSubnet.IsValid() || !c.PodSubnet.IsValid() ||
		!c.ServiceSubnet.IsValid() {
		return c, errors.Join(errors.New("the cluster says no good networks of itself"), err)
	}
	node := plan.Node{Number: 1, Hostname: r.NodeName, Labels: r.Labels}
	if node.Hostname == "" {
		if node.Hostname, err = os.Hostname(); err != nil {
			return c, fmt.Errorf("find this machine's name: %w", err)
		}
	}
	if err := plan.CheckNodeName(node.Hostname); err != nil {
		return c, fmt.Errorf("--node-name: %w", err)
	}
	address, err := nodeAddress(r.NodeIP, d.server)
	if err != nil {
		return c, err
	}
	c.Nodes, c.Joined = []plan.Node{node}, &plan.Joined{Server: d.server, Address: address}
	return c, nil
}

// nodeAddress returns the address of the node: the one asked for, which must be the machine's, or else the one by which
// the machine reaches the API server. Nobody would reach the kubelet at an address of another machine.
func nodeAddress(asked netip.Addr, server netip.AddrPort) (netip.Addr, error) {
	if !asked.IsValid() {
		return addressTowards(server)
	}
	has, err := host.Addresses()
	if err == nil && !slices.Contains(has, asked) {
		err = fmt.Errorf("--node-ip: %s is no address of this machine", asked)
	}
	return asked, err
}

// addressTowards returns the machine's address on the route to another. Connecting a socket of UDP asks the kernel for
// the route, and sends nothing.
func addressTowards(to netip.AddrPort) (netip.Addr, error) {
	conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("find this machine's address towards %s: %w", to, err)
	}
	defer conn.Close()
	local, err := netip.ParseAddrPort(conn.LocalAddr().String())
	return local.Addr(), err
}

// WriteCredentials writes the files with which the node's kubelet asks for its own certificate: the cluster's
// authority, and a kubeconfig with the token of the request.
func (d *Cluster) WriteCredentials(c plan.Config, r Request) error {
	const own = "bootstrap"
	k := clientcmdapi.NewConfig()
	k.Clusters[own] = d.cluster
	k.AuthInfos[own] = &clientcmdapi.AuthInfo{Token: r.token.String()}
	k.Contexts[own] = &clientcmdapi.Context{Cluster: own, AuthInfo: own}
	k.CurrentContext = own
	bootstrap, err := clientcmd.Write(*k)
	if err != nil {
		return fmt.Errorf("encode the bootstrap kubeconfig: %w", err)
	}
	l := c.Layout()
	return errors.Join(host.WriteFile(l.PKI("ca.crt"), d.cluster.CertificateAuthorityData),
		host.WriteFile(l.Kubeconfig(plan.BootstrapIdentity(c.Nodes[0].Name())), bootstrap))
}

// Wait waits until the API says that the node is Ready. This machine asks with the kubelet's certificate, and so cannot
// ask before the kubelet has one. Only ctx bounds the wait. The last reason is in the error.
func Wait(ctx context.Context, c plan.Config) error {
	last := fmt.Errorf("the kubelet has no certificate yet: if the cluster has a node %[1]s already, delete it there (kubectl delete node %[1]s), or join with another --node-name",
		c.Nodes[0].Name())
	err := host.Poll(ctx, 100*time.Millisecond, func() (bool, error) {
		// Requests without the certificate would fail with an error that explains nothing.
		if _, err := os.Stat(c.Layout().Kubeconfig(c.Identity())); err != nil {
			return false, nil
		}
		host.Progressed(ctx, "the kubelet has a certificate")
		isReady, err := client.ReadyNodes(ctx, c)
		if last = err; err == nil {
			last = errors.New("the API server does not call the node Ready")
		}
		return isReady[c.Nodes[0].Name()], nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}
