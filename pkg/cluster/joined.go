package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/api/bootstraptoken"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/steps"
)

// JoinOptions are those of Join.
type JoinOptions struct {
	Server string // the API server's address and port
	Token  string
	// CAHashes are what the cluster's authority may be, each as sha256:<hex>; without any, UnsafeSkipCAVerification
	// must be set.
	CAHashes                 []string
	UnsafeSkipCAVerification bool
	NodeName                 string     // "": the machine's
	NodeIP                   netip.Addr // not set: the one by which the machine reaches the API server
	Labels                   map[string]string
}

// Join makes this machine a node of the cluster at o.Server, and returns when the node is Ready. The machine's part of
// the cluster is in c.DataDir, and goes by c.Name on this machine.
func Join(ctx context.Context, home machine.Home, c plan.Config, o JoinOptions, self string,
	out io.Writer) (plan.Config,
	error) {
	if err := plan.CheckName(c.Name); err != nil {
		return c, fmt.Errorf("--name: %w", err)
	}
	if _, err := datadir.Load(c.DataDir); !errors.Is(err, os.ErrNotExist) {
		return c, errors.Join(fmt.Errorf("there is a cluster in %s already: choose another --name", c.DataDir), err)
	}
	if host, port, err := net.SplitHostPort(o.Server); err != nil || host == "" || port == "" {
		return c, fmt.Errorf("the cluster's address must be HOST:PORT, for example 192.0.2.1:6443, not %q", o.Server)
	}
	if err := plan.CheckJoinedLabels(o.Labels); err != nil {
		return c, err
	}
	token, err := bootstraptoken.Parse(o.Token)
	if err != nil {
		return c, fmt.Errorf("--token: %w", err)
	}
	pins, err := parsePins(o)
	if err != nil {
		return c, err
	}
	lock, err := machine.Lock(ctx)
	if err != nil {
		return c, err
	}
	defer lock.Close()
	start := newStart(c, out)
	found, err := steps.Value(ctx, start, "Ask the cluster who it is", func(ctx context.Context) (*discovered, error) {
		return discover(ctx, o.Server, token, pins)
	})
	if err != nil {
		return c, err
	}
	c, err = steps.Value(ctx, start, "Ask what a node must know", func(ctx context.Context) (plan.Config, error) {
		return found.complete(ctx, c, o, token)
	})
	if err != nil {
		return c, err
	}
	start = start.Of(c.NodeNames())
	err = start.Take(ctx,
		steps.New("Check the machine", func(ctx context.Context) error { return checkJoining(ctx, c, home) }),
		steps.New("Make the configuration", func(context.Context) error { return prepareJoined(c, found, token) }))
	if err != nil {
		return c, err
	}
	return c, startJoined(ctx, start, c, self)
}

// startAgain starts the node of a machine that has joined; started is false if it was Ready already.
func startAgain(ctx context.Context, c plan.Config, home machine.Home, self string, out io.Writer) (started bool,
	err error) {
	lock, err := machine.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if paused(c) {
		if err := resume(ctx, c); err != nil {
			return false, err
		}
	}
	start := newStart(c, out)
	if running(ctx, c) {
		if allReady(ctx, c) {
			return false, nil
		}
		return true, start.Run("Wait for the node", func() error { return waitJoined(ctx, c) })
	}
	if _, err := prepareStart(ctx, start, c, home); err != nil {
		return true, err
	}
	return true, startJoined(ctx, start, c, self)
}

func startJoined(ctx context.Context, start steps.Start, c plan.Config, self string) error {
	return start.Take(ctx,
		steps.New("Start the node", func(ctx context.Context) error { return startSupervisor(ctx, c, self) }),
		steps.New("Wait for the node", func(ctx context.Context) error { return waitJoined(ctx, c) }))
}

// waitJoined waits until the API says that the node is Ready. Until the kubelet has its certificate nobody here can
// ask.
func waitJoined(ctx context.Context, c plan.Config) error {
	last := fmt.Errorf("the kubelet has no certificate yet: if the cluster has a node %[1]s already, delete it there (kubectl delete node %[1]s), or join with another --node-name",
		c.Nodes[0].Name())
	err := host.Poll(ctx, 100*time.Millisecond, func() (bool, error) {
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

// checkJoining checks what a node needs of this machine, all of it before anything is made.
func checkJoining(ctx context.Context, c plan.Config, home machine.Home) error {
	if err := preflight(ctx, c); err != nil {
		return err
	}
	m, err := survey(c, home)
	if err != nil {
		return err
	}
	m.Contexts = nil // it writes none
	if claims := m.Collisions(c); len(claims) > 0 {
		return plan.DescribeClaims(claims)
	}
	return nil
}

// complete returns c with what the cluster says of itself, and what the machine is in it.
func (d *discovered) complete(ctx context.Context, c plan.Config, o JoinOptions,
	token bootstraptoken.Token) (plan.Config, error) {
	facts, err := d.facts(ctx, token)
	if err != nil {
		return c, err
	}
	c.NodeSubnet, c.PodSubnet, c.ServiceSubnet, c.FeatureGates, c.Mirrors = facts.NodeSubnet, facts.PodSubnet,
		facts.ServiceSubnet, facts.FeatureGates, facts.Mirrors
	c.IPFamily, c.Egress, c.Ports = plan.IPv4, true, plan.Ports{}
	if err := errors.Join(c.Networks().Check()...); err != nil || !c.NodeSubnet.IsValid() || !c.PodSubnet.IsValid() ||
		!c.ServiceSubnet.IsValid() {
		return c, errors.Join(errors.New("the cluster says no good networks of itself"), err)
	}
	node := plan.Node{Number: 1, Hostname: o.NodeName, Labels: o.Labels}
	if node.Hostname == "" {
		if node.Hostname, err = os.Hostname(); err != nil {
			return c, fmt.Errorf("find this machine's name: %w", err)
		}
	}
	if err := plan.CheckNodeName(node.Hostname); err != nil {
		return c, fmt.Errorf("--node-name: %w", err)
	}
	address := o.NodeIP
	if !address.IsValid() {
		if address, err = addressTowards(d.server); err != nil {
			return c, err
		}
	}
	c.Nodes, c.Joined = []plan.Node{node}, &plan.Joined{Server: d.server, Address: address}
	return c, nil
}

// addressTowards is the machine's address by which it reaches another. Nothing is sent.
func addressTowards(to netip.AddrPort) (netip.Addr, error) {
	conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("find this machine's address towards %s: %w", to, err)
	}
	defer conn.Close()
	local, err := netip.ParseAddrPort(conn.LocalAddr().String())
	return local.Addr(), err
}

// prepareJoined makes the files that the node's processes read.
func prepareJoined(c plan.Config, d *discovered, token bootstraptoken.Token) error {
	const own = "bootstrap"
	k := clientcmdapi.NewConfig()
	k.Clusters[own] = d.cluster
	k.AuthInfos[own] = &clientcmdapi.AuthInfo{Token: token.String()}
	k.Contexts[own] = &clientcmdapi.Context{Cluster: own, AuthInfo: own}
	k.CurrentContext = own
	bootstrap, err := clientcmd.Write(*k)
	if err != nil {
		return fmt.Errorf("encode the bootstrap kubeconfig: %w", err)
	}
	l := c.Layout()
	return errors.Join(datadir.Save(c), os.MkdirAll(l.Run(), 0o700),
		host.WriteFile(l.PKI("ca.crt"), d.cluster.CertificateAuthorityData),
		host.WriteFile(l.Kubeconfig(plan.BootstrapIdentity(c.Nodes[0].Name())), bootstrap))
}
