package join

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// Complete returns c, which has a name and directories, with the settings of the cluster and with this machine as its
// only node. It writes nothing. What the cluster says is checked before it becomes routes and rules of this machine.
func (d *Cluster) Complete(ctx context.Context, c plan.Config, r Request) (plan.Config, error) {
	facts, peers, err := d.facts(ctx, r.token)
	if err != nil {
		return c, err
	}
	server := facts.Server
	if !server.IsValid() { // an older version's, which advertises an address alone
		if server, err = netip.ParseAddrPort(strings.TrimPrefix(d.cluster.Server, "https://")); err != nil {
			return c, fmt.Errorf("its server is %q, not an https URL with an IPv4 address and a port: %w", d.cluster.Server, err)
		}
	}
	c.Joined = &plan.Joined{Server: server, ControlPlane: r.ControlPlane}
	if c, err = facts.givenTo(c); err != nil {
		return c, err
	}
	c.Peers = peers
	node := plan.Node{Number: 1, Hostname: r.NodeName, Labels: r.Labels}
	if node.Hostname == "" {
		if node.Hostname, err = os.Hostname(); err != nil {
			return c, fmt.Errorf("find this machine's name: %w", err)
		}
	}
	if err := plan.CheckNodeName(node.Hostname); err != nil {
		return c, fmt.Errorf("--node-name: %w", err)
	}
	address, err := nodeAddress(r.NodeIP, server)
	if err != nil {
		return c, err
	}
	c.Nodes, c.Joined.Address = []plan.Node{node}, address
	if !r.ControlPlane {
		return c, nil
	}
	// The Service kubernetes has one port for all API servers, so it is the first machine's.
	c.AdvertiseAddress, c.Extensible, c.Ports = address, true, plan.Ports{API: int(server.Port())}
	own := c.InSlot(0).Ports
	if c.Ports = own; node.Hostname == plan.FirstMember {
		return c, fmt.Errorf("--node-name: %s is the control plane of the first machine, and its etcd member: choose another", plan.FirstMember)
	}
	if len(peers) == 0 {
		return c, errors.New("the cluster takes no control planes of other machines yet (on its machine: bonsai token create --upload-certs --print-join-command)")
	}
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
	// The kubelet asks for its certificate, and uses it, by way of the balancer on this machine.
	k.Clusters[own] = &clientcmdapi.Cluster{Server: c.Server(),
		CertificateAuthorityData: d.cluster.CertificateAuthorityData}
	k.AuthInfos[own] = &clientcmdapi.AuthInfo{Token: r.token.String()}
	k.Contexts[own] = &clientcmdapi.Context{Cluster: own, AuthInfo: own}
	k.CurrentContext = own
	bootstrap, err := clientcmd.Write(*k)
	if err != nil {
		return fmt.Errorf("encode the bootstrap kubeconfig: %w", err)
	}
	l := c.Layout()
	return errors.Join(host.KeepFile(l.PKI("ca.crt"), d.cluster.CertificateAuthorityData),
		host.KeepFile(l.Kubeconfig(plan.BootstrapIdentity(c.Nodes[0].Name())), bootstrap))
}

// CheckName returns an error if the cluster has a node of this machine's name elsewhere. A machine with a control plane
// could take its place, since it has the authority's key. One that comes back after it has lost its data has the same
// address.
func (d *Cluster) CheckName(ctx context.Context, c plan.Config) error {
	api, err := client.CoreAt(c, d.cluster.Server)
	if err != nil {
		return err
	}
	name := c.Nodes[0].Name()
	switch node, err := core.Nodes(api).Get(ctx, "", name); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("ask for the node %s: %w", name, err)
	case !slices.Contains(client.InternalIPs(node), c.Joined.Address):
		return fmt.Errorf("--node-name: the cluster has a node %s with the address %s: choose another, or delete it first (kubectl delete node %[1]s)",
			name, plan.CommaList(client.InternalIPs(node)))
	}
	return nil
}

// hasExpired reports whether the certificate with which the node's kubelet has last asked the API server is over.
// Kubelets renew theirs in time as long as they run and reach the API server.
func hasExpired(c plan.Config, now time.Time) bool {
	pair := c.Layout().PKI("kubelet-client-current.pem")
	certificates, err := cert.CertsFromFile(pair)
	return err == nil && now.After(certificates[0].NotAfter)
}

// Again returns the configuration of a machine that joins the cluster a second time, after its certificate has
// expired: what the machine had, with what the cluster says now. The cluster must be the one that it joined.
func (d *Cluster) Again(was, now plan.Config) (plan.Config, error) {
	if was.Nodes[0].Name() != now.Nodes[0].Name() || was.Joined.Address != now.Joined.Address {
		return was, fmt.Errorf("this machine is the node %s with the address %s, and joins again as that alone (bonsai down leaves the cluster)",
			was.Nodes[0].Name(), was.Joined.Address)
	}
	trusted, err := cert.CertsFromFile(was.Layout().PKI("ca.crt"))
	if err != nil {
		return was, err
	}
	offered, err := cert.ParseCertsPEM(d.cluster.CertificateAuthorityData)
	if err != nil {
		return was, err
	}
	if was.Networks() != now.Networks() ||
		publicKeyHash(trusted[0].RawSubjectPublicKeyInfo) != publicKeyHash(offered[0].RawSubjectPublicKeyInfo) {
		return was, errors.New("this machine belongs to another cluster (bonsai down leaves it)")
	}
	return now, nil
}

// Wait waits until the API says that the node is Ready. This machine asks with the kubelet's certificate, and so cannot
// ask before the kubelet has one. Only ctx bounds the wait. The last reason is in the error.
func Wait(ctx context.Context, c plan.Config) error {
	last := fmt.Errorf("the kubelet has no certificate yet: if the cluster has a node %[1]s already, delete it there (kubectl delete node %[1]s), or join with another --node-name",
		c.Nodes[0].Name())
	expired := errors.New("the kubelet's certificate has expired while this machine was away: on the cluster's machine run bonsai token create --print-join-command, here bonsai stop and then the printed command, and there kubectl certificate approve for the request of system:bootstrap that kubectl get csr shows")
	err := host.Poll(ctx, 100*time.Millisecond, func() (bool, error) {
		// Requests without a valid certificate would fail with an error that explains nothing.
		if _, err := os.Stat(c.Layout().Kubeconfig(c.Identity())); err != nil {
			return false, nil
		}
		if hasExpired(c, time.Now()) {
			last = expired
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
