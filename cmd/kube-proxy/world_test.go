package main

import (
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	proxyconfig "k8s.io/kube-proxy/config/v1alpha1"

	"bonsai/cmd/internal/netnstest"
	"bonsai/pkg/proxy"
)

// world is a node (172.20.0.1 outside) with two pods (10.244.1.2, 10.244.1.6) and a client outside (172.20.0.2), with
// the real backends in the node's kernel.
type world struct {
	t                       *testing.T
	node, one, two, outside *netnstest.Namespace
	state                   *proxy.State
	settings                *settings
	backends                []proxy.Backend
}

func serviceRange() netip.Prefix { return netip.MustParsePrefix("10.96.0.0/16") }

func newState() *proxy.State {
	s := proxy.NewState("here")
	s.ServiceCIDRs().Set(&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{serviceRange().String()}}})
	return s
}

// inEachMode runs a test in a world of each mode of the proxy.
func inEachMode(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	for _, mode := range []string{modeNFTables, modeIPTables, modeIPVS} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat("/proc/net/ip_vs"); mode == modeIPVS && err != nil {
				t.Skipf("SKIPPED: the kernel has no IPVS (modprobe ip_vs): %v", err)
			}
			test(t, newWorld(t, mode))
		})
	}
}

func newWorld(t *testing.T, mode string) *world {
	t.Helper()
	w := &world{
		t: t, node: netnstest.New(t, "node"), one: netnstest.New(t, "one"), two: netnstest.New(t, "two"),
		outside: netnstest.New(t, "out"),
		state:   newState(),
	}
	// Redirects (the way out is also the client's way in) would use up the client's share of ICMP messages.
	w.node.Run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.send_redirects=0",
		"net.ipv4.conf.default.send_redirects=0")
	w.node.Link(w.one, "10.244.1.1/30", "10.244.1.2/30")
	w.node.Link(w.two, "10.244.1.5/30", "10.244.1.6/30")
	w.node.Link(w.outside, "172.20.0.1/24", "172.20.0.2/24")
	w.node.IP("route", "add", "default", "via", "172.20.0.2")
	w.one.Serve("one", "10.244.1.2:8080")
	w.two.Serve("two", "10.244.1.6:8080")
	// Whatever leaves the node for a service address is counted, and must not exist.
	w.node.Run("nft", "add table ip leak; add chain ip leak out { type filter hook postrouting priority 300; }; add rule ip leak out oifname != lo ip daddr 10.96.0.0/16 counter")

	s := &settings{mode: mode, primaryNodePorts: mode == modeNFTables,
		ipvs:         proxyconfig.KubeProxyIPVSConfiguration{Scheduler: "rr"},
		clusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}}
	w.start(s)
	w.state.Nodes().Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "here"},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.20.0.1"}}}})
	return w
}

// start gives the node a new proxy, which knows nothing of what an earlier one wrote.
func (w *world) start(s *settings) {
	w.t.Helper()
	log := slog.New(slog.DiscardHandler)
	w.settings = s
	w.node.Do(func() {
		rules, err := s.backends(newMetrics(s.mode, w.state, prometheus.NewRegistry()), log)
		if err != nil {
			w.t.Errorf("%s: %v", s.mode, err)
		}
		w.backends = append(rules, s.extras(func() bool { return true }, log)...)
	})
	if w.t.Failed() {
		w.t.FailNow()
	}
}

func (w *world) sync() {
	w.t.Helper()
	u := w.state.Take()
	w.node.Do(func() {
		for _, b := range w.backends {
			if err := b.Apply(w.t.Context(), u); err != nil {
				w.t.Errorf("apply: %v", err)
			}
		}
	})
}

// service sets a service with a TCP and a UDP port 80 and gives it the endpoints, all ready.
func (w *world) service(name, ip string, change func(*corev1.ServiceSpec), endpoints ...string) {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.ServiceSpec{
		ClusterIP: ip, Ports: []corev1.ServicePort{{Name: "t", Port: 80, Protocol: corev1.ProtocolTCP},
			{Name: "u", Port: 80, Protocol: corev1.ProtocolUDP}},
	}}
	if change != nil {
		change(&s.Spec)
	}
	w.state.Services().Set(s)
	w.endpoints(name, endpoints...)
}

func (w *world) endpoints(name string, addresses ...string) {
	w.endpointsOn("here", name, addresses...)
}

// endpointsOn says which node the endpoints are on.
func (w *world) endpointsOn(node, name string, addresses ...string) {
	sl := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-1",
			Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{
			{Name: new("t"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)},
			{Name: new("u"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolUDP)},
		},
	}
	for _, a := range addresses {
		sl.Endpoints = append(sl.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, NodeName: new(node)})
	}
	w.state.Slices().Set(sl)
	w.sync()
}

// answers asks n times and counts the servers that answered; errors count under "error".
func (w *world) answers(from *netnstest.Namespace, network, address string, n int) (servers, clients map[string]int) {
	servers, clients = map[string]int{}, map[string]int{}
	for range n {
		s, c, err := from.Ask(network, address)
		if err != nil {
			w.t.Logf("%s %s: %v", network, address, err)
			s = "error"
		}
		servers[s]++
		clients[c]++
	}
	return servers, clients
}

// rules is what the node's kernel has of the mode.
func (w *world) rules() string {
	w.t.Helper()
	if w.settings.mode == modeIPTables {
		return w.node.Run("iptables-save")
	}
	return w.node.Run("nft", "list", "table", "ip", w.table())
}

// table names the proxy's nftables table.
func (w *world) table() string {
	if w.settings.mode == modeIPVS {
		return "kube-proxy-ipvs"
	}
	return "kube-proxy"
}

func (w *world) noLeak() {
	w.t.Helper()
	if out := w.node.Run("nft", "list", "table", "ip", "leak"); !strings.Contains(out, "packets 0 ") {
		w.t.Errorf("packets to service addresses left the node:\n%s", out)
	}
}

// eventually polls until ok, for ten seconds.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Error("did not happen within ten seconds")
			return
		}
	}
}
