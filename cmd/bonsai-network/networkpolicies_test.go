package main

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/cmd/internal/netnstest"
	"bonsai/pkg/network/nft"
	"bonsai/pkg/network/policy"
)

// fence is a node whose pods share a bridge (web 10.244.1.2, client 10.244.1.3, starting 10.244.1.4) and a client
// outside (172.20.0.2), with the real tables in the node's kernel.
type fence struct {
	t                                    *testing.T
	node, web, client, starting, outside *netnstest.Namespace
	state                                *policy.State
	tables                               []*nft.PolicyTable
}

func newFence(t *testing.T) *fence {
	t.Helper()
	if _, err := os.Stat("/proc/sys/net/bridge"); err != nil {
		t.Skipf("SKIPPED: needs br_netfilter: %v", err)
	}
	f := &fence{
		t: t, node: netnstest.New(t, "node"), web: netnstest.New(t, "web"), client: netnstest.New(t, "client"),
		starting: netnstest.New(t, "start"),
		outside:  netnstest.New(t, "out"),
	}
	f.node.Run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.send_redirects=0",
		"net.ipv4.conf.default.send_redirects=0")
	f.node.Run("sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=1")
	f.node.IP("link", "add", "cni0", "type", "bridge")
	f.node.IP("addr", "add", "10.244.1.1/24", "dev", "cni0")
	f.node.IP("link", "set", "cni0", "up")
	for _, p := range []struct {
		ns      *netnstest.Namespace
		address string
	}{{f.web, "10.244.1.2"}, {f.client, "10.244.1.3"}, {f.starting, "10.244.1.4"}} {
		dev := "v" + p.address[len(p.address)-1:]
		f.node.IP("link", "add", dev, "type", "veth", "peer", "name", "eth0", "netns", p.ns.Name)
		f.node.IP("link", "set", dev, "master", "cni0", "up")
		f.node.IP("link", "set", dev, "type", "bridge_slave", "hairpin", "on")
		p.ns.IP("addr", "add", p.address+"/24", "dev", "eth0")
		p.ns.IP("link", "set", "eth0", "up")
		p.ns.IP("route", "add", "default", "via", "10.244.1.1")
	}
	f.node.Link(f.outside, "172.20.0.1/24", "172.20.0.2/24")
	f.web.Serve("web", "10.244.1.2:8080")
	f.web.Serve("other", "10.244.1.2:8081")
	f.client.Serve("client", "10.244.1.3:8080")
	f.outside.Serve("outside", "172.20.0.2:8080")
	f.node.Serve("node", "10.244.1.1:8080")
	f.node.Do(func() {
		var err error
		if f.tables, err = (&settings{}).policyTables(slog.New(slog.DiscardHandler)); err != nil {
			t.Errorf("nftables: %v", err)
		}
	})
	f.state = policy.NewState("here", func() []netip.Prefix {
		return []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")}
	})
	f.state.Pods().Set(f.pod("web", "10.244.1.2"))
	f.state.Pods().Set(f.pod("client", "10.244.1.3"))
	f.state.Namespaces().Set(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default",
			Labels: map[string]string{"kubernetes.io/metadata.name": "default"}}})
	return f
}

func (f *fence) pod(name string, addresses ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
		Labels: map[string]string{"app": name}}, Spec: corev1.PodSpec{
		NodeName: "here", Containers: []corev1.Container{
			{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}}}}}
	for _, a := range addresses {
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: a})
	}
	return p
}

// policy sets a policy for the pods of an app, and has it enforced.
func (f *fence) policy(name, app string, spec networkingv1.NetworkPolicySpec) {
	f.t.Helper()
	spec.PodSelector = metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	f.state.Policies().Set(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: spec})
	f.sync()
}

func (f *fence) gone(name string) {
	f.t.Helper()
	f.state.Policies().Delete(
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	f.sync()
}

func (f *fence) sync() {
	f.t.Helper()
	f.node.Do(func() {
		if err := enforce(f.t.Context(), f.state, f.tables, slog.New(slog.DiscardHandler)); err != nil {
			f.t.Errorf("apply: %v", err)
		}
	})
}

// want asks addresses from a namespace and compares what came of it: "web", "refused" (told at once), or an error.
func (f *fence) want(step string, from *netnstest.Namespace, network string, answers map[string]string) {
	f.t.Helper()
	for address, want := range answers {
		got, _, err := from.Ask(network, address)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED) && network == "tcp",
			errors.Is(err, syscall.EHOSTUNREACH) && network == "udp":
			got = "refused"
		case err != nil:
			got = "error: " + err.Error()
		}
		if got != want {
			f.t.Errorf("%s: %s %s: %q, want %q", step, network, address, got, want)
		}
	}
}

// TestNetworkPoliciesInKernel: pods on one bridge and clients outside are cut off and let through, over TCP and UDP, as
// policies say.
func TestNetworkPoliciesInKernel(t *testing.T) {
	t.Parallel()
	f := newFence(t)
	const web, other, client, outside, node = "10.244.1.2:8080", "10.244.1.2:8081", "10.244.1.3:8080",
		"172.20.0.2:8080", "10.244.1.1:8080"
	tcp, port := new(corev1.ProtocolTCP), func(n int32) *intstr.IntOrString { return new(intstr.FromInt32(n)) }
	ingress := func(r ...networkingv1.NetworkPolicyIngressRule) networkingv1.NetworkPolicySpec {
		return networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Ingress"}, Ingress: r}
	}
	block := func(cidr string, except ...string) []networkingv1.NetworkPolicyPeer {
		return []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}}
	}
	apps := func(app string) []networkingv1.NetworkPolicyPeer {
		return []networkingv1.NetworkPolicyPeer{
			{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
				NamespaceSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"kubernetes.io/metadata.name": "default"}}}}
	}
	f.sync()
	for _, network := range []string{"tcp", "udp"} {
		f.want("no policy", f.client, network, map[string]string{web: "web", other: "other", outside: "outside"})
	}

	f.policy("deny", "web", ingress())
	for _, network := range []string{"tcp", "udp"} {
		f.want("denied, from its neighbour", f.client, network,
			map[string]string{web: "refused", other: "refused", outside: "outside"})
		f.want("denied, from outside", f.outside, network, map[string]string{web: "refused", client: "client"})
		f.want("denied, from itself and to others", f.web, network,
			map[string]string{web: "web", client: "client", outside: "outside"})
		f.want("denied, from its node", f.node, network, map[string]string{web: "web"})
	}

	f.policy("apps", "web", ingress(
		networkingv1.NetworkPolicyIngressRule{From: apps("client"),
			Ports: []networkingv1.NetworkPolicyPort{{Protocol: tcp, Port: new(intstr.FromString("http"))}}}))
	f.want("a label at a named port", f.client, "tcp", map[string]string{web: "web", other: "refused"})
	f.want("a label at a named port", f.client, "udp", map[string]string{web: "refused"})
	f.want("a label at a named port", f.outside, "tcp", map[string]string{web: "refused"})
	f.gone("apps")

	f.policy("block", "web",
		ingress(networkingv1.NetworkPolicyIngressRule{From: block("0.0.0.0/0", "10.244.1.3/32", "10.244.1.0/30"),
			Ports: []networkingv1.NetworkPolicyPort{
				{Protocol: tcp, Port: port(8081), EndPort: new(int32(8090))}, {Protocol: tcp, Port: port(8085)},
				{Protocol: new(corev1.ProtocolUDP)}}}))
	f.want("a block with exceptions, a range", f.outside, "tcp", map[string]string{web: "refused", other: "other"})
	f.want("a block with exceptions, a protocol", f.outside, "udp", map[string]string{web: "web"})
	f.want("a block with exceptions", f.client, "tcp", map[string]string{other: "refused"})

	f.gone("deny")
	f.gone("block")
	f.policy("out", "client", networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Egress"},
		Egress: []networkingv1.NetworkPolicyEgressRule{
			{To: apps("web"), Ports: []networkingv1.NetworkPolicyPort{{Protocol: tcp, Port: port(8080)}}}}})
	f.want("egress", f.client, "tcp", map[string]string{web: "web", other: "refused", outside: "refused", node: "node"})
	f.want("egress", f.outside, "tcp", map[string]string{client: "client"})

	// Policies are for what the pod is now.
	f.state.Pods().Delete(f.pod("client"))
	f.sync()
	f.want("another pod's address", f.client, "tcp", map[string]string{outside: "outside"})
	f.gone("out")
	f.want("no policy any more", f.client, "tcp", map[string]string{other: "other"})
	if rules := f.node.Run("nft", "list", "table", "ip",
		"bonsai-network-policies"); strings.Contains(rules, "isolation-") || strings.Contains(rules, "group-") {
		t.Errorf("rules are left:\n%s", rules)
	}
}

// TestEstablishedConnectionsStay: a policy refuses new connections, those that there are go on.
func TestEstablishedConnectionsStay(t *testing.T) {
	t.Parallel()
	f := newFence(t)
	f.sync()
	var client, server net.Conn
	f.web.Do(func() {
		l, err := net.Listen("tcp", "10.244.1.2:9000")
		if err != nil {
			t.Error(err)
			return
		}
		defer l.Close()
		f.client.Do(func() { client, err = net.DialTimeout("tcp", "10.244.1.2:9000", 2*time.Second) })
		if err != nil {
			t.Error(err)
			return
		}
		if server, err = l.Accept(); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	defer client.Close()
	defer server.Close()
	f.policy("deny", "web", networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Ingress", "Egress"}})
	for from, to := range map[net.Conn]net.Conn{client: server, server: client} {
		if _, err := fmt.Fprintln(from, "still here"); err != nil {
			t.Error(err)
		}
		if err := to.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
			t.Error(err)
		}
		if line, err := bufio.NewReader(to).ReadString('\n'); err != nil || line != "still here\n" {
			t.Errorf("got %q, %v", line, err)
		}
	}
	f.want("a new connection", f.client, "tcp", map[string]string{"10.244.1.2:8080": "refused"})
}

// TestStartingPodInKernel: an isolated pod whose address nobody has told yet reaches nothing, known pods do; then its
// policy holds.
func TestStartingPodInKernel(t *testing.T) {
	t.Parallel()
	f := newFence(t)
	f.state.Pods().Set(f.pod("starting"))
	allowed := networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Egress"},
		Egress: []networkingv1.NetworkPolicyEgressRule{{Ports: []networkingv1.NetworkPolicyPort{
			{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(8080))}}}}}
	f.policy("few", "starting", allowed)
	if _, _, err := f.starting.Ask("udp", "10.244.1.2:8080"); err == nil {
		t.Error("a starting pod has reached another one")
	}
	f.want("beside a starting pod", f.client, "udp", map[string]string{"10.244.1.2:8080": "web"})
	f.state.Pods().Set(f.pod("starting", "10.244.1.4"))
	f.sync()
	f.want("started", f.starting, "tcp", map[string]string{"10.244.1.2:8080": "web", "10.244.1.2:8081": "refused"})
}
