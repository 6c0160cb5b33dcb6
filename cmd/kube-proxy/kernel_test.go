package main

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/cmd/internal/netnstest"
	"bonsai/pkg/proxy"
)

func TestClusterIPInKernel(t *testing.T) {
	inEachMode(t, func(t *testing.T, w *world) {
		w.service("web", "10.96.0.10", nil, "10.244.1.2", "10.244.1.6")
		for from, ns := range map[string]*netnstest.Namespace{"pod": w.one, "node": w.node} {
			for _, network := range []string{"tcp", "udp"} {
				servers, _ := w.answers(ns, network, "10.96.0.10:80", 40)
				if servers["one"] < 5 || servers["two"] < 5 || servers["error"] > 0 {
					t.Errorf("from %s over %s: not balanced: %v", from, network, servers)
				}
			}
		}

		// A pod that reaches another pod keeps its address; one that reaches itself comes from the node.
		w.endpoints("web", "10.244.1.6")
		if _, clients := w.answers(w.one, "tcp", "10.96.0.10:80", 3); clients["10.244.1.2"] != 3 {
			t.Errorf("pod to pod: clients %v", clients)
		}
		if servers, clients := w.answers(w.two, "tcp", "10.96.0.10:80", 3); servers["two"] != 3 ||
			clients["10.244.1.5"] != 3 {
			t.Errorf("hairpin: servers %v clients %v", servers, clients)
		}
		// Somebody outside who routes to the service range by this node is masqueraded, to get the answer back.
		if servers, clients := w.answers(w.outside, "tcp", "10.96.0.10:80", 3); servers["two"] != 3 ||
			clients["10.244.1.5"] != 3 {
			t.Errorf("from outside: servers %v clients %v", servers, clients)
		}
		w.noLeak()
	})
}

// TestPodInterfaceInKernel: pods of the node are known by the interface that their packets come through, whatever their
// addresses are.
func TestPodInterfaceInKernel(t *testing.T) {
	inEachMode(t, func(t *testing.T, w *world) {
		w.service("web", "10.96.0.10", nil, "10.244.1.6")
		for name, masqueraded := range map[string]bool{"v1024412": false, "v1024*": false, "v1722002": true,
			"v1722*": true} {
			byInterface := *w.settings
			byInterface.podInterface, byInterface.clusterCIDRs = name, nil
			w.start(&byInterface)
			w.state.Again(slices.Values([]proxy.Name{{Namespace: "default", Name: "web"}}))
			w.sync()
			pod, outside := "10.244.1.2", "172.20.0.2"
			if masqueraded {
				pod = "10.244.1.5"
			} else {
				outside = "10.244.1.5"
			}
			if servers, clients := w.answers(w.one, "tcp", "10.96.0.10:80", 3); clients[pod] != 3 {
				t.Errorf("%s: from a pod: servers %v, clients %v, want %s", name, servers, clients, pod)
			}
			if servers, clients := w.answers(w.outside, "tcp", "10.96.0.10:80", 3); clients[outside] != 3 {
				t.Errorf("%s: from outside: servers %v, clients %v, want %s", name, servers, clients, outside)
			}
			if servers, _ := w.answers(w.node, "tcp", "10.96.0.10:80", 1); servers["two"] != 1 {
				t.Errorf("%s: from the node: %v", name, servers)
			}
		}
		w.noLeak()
	})
}

// TestElsewhereInKernel: endpoints of other nodes are balanced in one rule, one alone as well, and make room for
// endpoints here.
func TestElsewhereInKernel(t *testing.T) {
	inEachMode(t, func(t *testing.T, w *world) {
		w.service("web", "10.96.0.10", func(s *corev1.ServiceSpec) {
			s.Type, s.Ports[0].NodePort, s.Ports[1].NodePort = corev1.ServiceTypeNodePort, 30080, 30080
		})
		w.endpointsOn("there", "web", "10.244.1.2", "10.244.1.6")
		for from, ns := range map[string]*netnstest.Namespace{"node": w.node, "outside": w.outside} {
			address := "10.96.0.10:80"
			if from == "outside" {
				address = "172.20.0.1:30080"
			}
			for _, network := range []string{"tcp", "udp"} {
				servers, _ := w.answers(ns, network, address, 40)
				if servers["one"] < 5 || servers["two"] < 5 || servers["error"] > 0 {
					t.Errorf("from %s over %s: not balanced: %v", from, network, servers)
				}
			}
		}
		w.endpointsOn("there", "web", "10.244.1.6")
		if servers, clients := w.answers(w.one, "tcp", "10.96.0.10:80", 3); servers["two"] != 3 ||
			clients["10.244.1.2"] != 3 {
			t.Errorf("one endpoint: servers %v clients %v", servers, clients)
		}
		w.endpoints("web", "10.244.1.6")
		if servers, clients := w.answers(w.two, "tcp", "10.96.0.10:80", 3); servers["two"] != 3 ||
			clients["10.244.1.5"] != 3 {
			t.Errorf("here after all: servers %v clients %v", servers, clients)
		}
		w.noLeak()
	})
}

// TestRefusedInKernel: without endpoints, at ports a service does not have and at addresses no service has, connections
// are refused at once, and nothing leaves the node.
func TestRefusedInKernel(t *testing.T) {
	inEachMode(t, func(t *testing.T, w *world) {
		w.service("empty", "10.96.0.11", func(s *corev1.ServiceSpec) {
			s.Type, s.Ports[0].NodePort = corev1.ServiceTypeNodePort, 30081
		})
		w.service("web", "10.96.0.10", nil, "10.244.1.2")
		for _, address := range []string{"10.96.0.11:80", "10.96.0.10:81", "10.96.77.7:80"} {
			for from, ns := range map[string]*netnstest.Namespace{"pod": w.one, "node": w.node} {
				for _, network := range []string{"tcp", "udp"} {
					// The kernel tells a local UDP sender of a refusal that it may not send.
					_, _, err := ns.Ask(network, address)
					refused := errors.Is(err, syscall.ECONNREFUSED) ||
						(from == "node" && network == "udp" && errors.Is(err, syscall.EPERM))
					if !refused {
						t.Errorf("from %s to %s %s: %v, want refused", from, network, address, err)
					}
				}
			}
		}
		for from, ns := range map[string]*netnstest.Namespace{"outside": w.outside, "pod": w.one, "node": w.node} {
			if _, _, err := ns.Ask("tcp", "172.20.0.1:30081"); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("node port from %s: %v, want refused", from, err)
			}
		}
		w.noLeak()
	})
}

func TestNodePortInKernel(t *testing.T) {
	inEachMode(t, func(t *testing.T, w *world) {
		nodePort := func(s *corev1.ServiceSpec) {
			s.Type, s.Ports[0].NodePort, s.Ports[1].NodePort = corev1.ServiceTypeNodePort, 30080, 30080
			s.ExternalIPs = []string{"192.0.2.1"}
		}
		w.service("web", "10.96.0.10", nodePort, "10.244.1.2", "10.244.1.6")
		for from, ns := range map[string]*netnstest.Namespace{"outside": w.outside, "pod": w.one, "node": w.node} {
			for _, network := range []string{"tcp", "udp"} {
				if servers, _ := w.answers(ns, network, "172.20.0.1:30080", 30); servers["one"] < 3 ||
					servers["two"] < 3 || servers["error"] > 0 {
					t.Errorf("from %s over %s: %v", from, network, servers)
				}
			}
		}
		if servers, _ := w.answers(w.outside, "tcp", "192.0.2.1:80", 5); servers["error"] > 0 {
			t.Errorf("external IP: %v", servers)
		}
		if _, clients := w.answers(w.outside, "tcp", "172.20.0.1:30080", 3); clients["172.20.0.2"] != 0 {
			t.Errorf("policy Cluster must masquerade, clients %v", clients)
		}

		w.service("web", "10.96.0.10", func(s *corev1.ServiceSpec) {
			nodePort(s)
			s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}, "10.244.1.2")
		if servers, clients := w.answers(w.outside, "tcp", "172.20.0.1:30080", 3); servers["one"] != 3 ||
			clients["172.20.0.2"] != 3 {
			t.Errorf("policy Local must keep the client's address: servers %v clients %v", servers, clients)
		}
		if servers, _ := w.answers(w.node, "tcp", "172.20.0.1:30080", 3); servers["one"] != 3 {
			t.Errorf("policy Local from the node: %v", servers)
		}
		w.noLeak()
	})
}

// A Service that names another's cluster IP as its external one does not get the traffic to it, whichever came first,
// and gets none to an address of the service range that nobody has yet (CVE-2020-8554).
func TestStolenClusterIP(t *testing.T) {
	inEachMode(t, func(t *testing.T, w *world) {
		w.service("thief", "10.96.0.11", func(s *corev1.ServiceSpec) {
			s.ExternalIPs = []string{"10.96.0.10", "10.96.0.12"}
			s.Ports = append(s.Ports, corev1.ServicePort{Name: "t", Port: 81, Protocol: corev1.ProtocolTCP})
		}, "10.244.1.6")
		w.service("web", "10.96.0.10", nil, "10.244.1.2")
		for from, ns := range map[string]*netnstest.Namespace{"pod": w.one, "node": w.node} {
			for _, network := range []string{"tcp", "udp"} {
				if servers, _ := w.answers(ns, network, "10.96.0.10:80", 5); servers["one"] != 5 {
					t.Errorf("from %s over %s: %v", from, network, servers)
				}
			}
			for _, address := range []string{"10.96.0.10:81", "10.96.0.12:80"} {
				if _, _, err := ns.Ask("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("%s from %s: %v, want refused", address, from, err)
				}
			}
		}
		w.noLeak()
	})
}

func TestSourceRangesInKernel(t *testing.T) {
	inEachMode(t, func(t *testing.T, w *world) {
		balanced := func(allowed string) *corev1.Service {
			return &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
				Spec: corev1.ServiceSpec{
					Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.10",
					LoadBalancerSourceRanges: []string{allowed},
					Ports:                    []corev1.ServicePort{{Name: "t", Port: 80, Protocol: corev1.ProtocolTCP}},
				},
				Status: corev1.ServiceStatus{
					LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.9"}}}},
			}
		}
		w.state.Services().Set(balanced("172.20.0.0/24"))
		w.endpoints("web", "10.244.1.2")
		if servers, _ := w.answers(w.outside, "tcp", "192.0.2.9:80", 3); servers["one"] != 3 {
			t.Errorf("allowed source: %v", servers)
		}
		w.state.Services().Set(balanced("198.51.100.0/24"))
		w.sync()
		var timeout net.Error
		if _, _, err := w.outside.Ask("tcp", "192.0.2.9:80"); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("other source: %v, want silence", err)
		}
	})
}

func TestAffinityInKernel(t *testing.T) {
	inEachMode(t, func(t *testing.T, w *world) {
		w.service("web", "10.96.0.10", func(s *corev1.ServiceSpec) {
			s.SessionAffinity = corev1.ServiceAffinityClientIP
			s.SessionAffinityConfig = &corev1.SessionAffinityConfig{
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(1))}}
		}, "10.244.1.2", "10.244.1.6")
		servers, _ := w.answers(w.node, "tcp", "10.96.0.10:80", 20)
		if servers["one"] != 20 && servers["two"] != 20 {
			t.Errorf("the client changed its endpoint: %v", servers)
		}
		// Another change leaves the client where it is.
		w.service("other", "10.96.0.12", nil, "10.244.1.2")
		if again, _ := w.answers(w.node, "tcp", "10.96.0.10:80", 5); (again["one"] == 5) != (servers["one"] == 20) {
			t.Errorf("a change of another service moved the client from %v to %v", servers, again)
		}
		// The set forgets the client after its timeout. Of iptables the rule looks at the time itself.
		eventually(t, func() bool {
			return w.settings.mode == modeIPTables || !strings.Contains(w.rules(), "expires")
		})
	})
}

// TestRestartInKernel: a proxy that starts over the table of an earlier one keeps the clients of session affinity at
// their endpoints (Service API, sessionAffinity) and removes what has no service any more.
func TestRestartInKernel(t *testing.T) {
	inEachMode(t, func(t *testing.T, w *world) {
		sticky := func(s *corev1.ServiceSpec) { s.SessionAffinity = corev1.ServiceAffinityClientIP }
		w.service("web", "10.96.0.10", sticky, "10.244.1.2", "10.244.1.6")
		w.service("gone", "10.96.0.12", sticky, "10.244.1.2")
		servers, _ := w.answers(w.node, "tcp", "10.96.0.10:80", 1)
		if _, _, err := w.node.Ask("tcp", "10.96.0.12:80"); err != nil {
			t.Error(err)
		}
		for restart := range 3 {
			w.state = newState()
			w.state.Nodes().Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "here"},
				Status: corev1.NodeStatus{
					Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.20.0.1"}}}})
			w.start(w.settings)
			w.service("web", "10.96.0.10", sticky, "10.244.1.2", "10.244.1.6")
			if again, _ := w.answers(w.node, "tcp", "10.96.0.10:80",
				10); (again["one"] == 10) != (servers["one"] == 1) || again["error"] > 0 {
				t.Errorf("restart %d moved the client from %v to %v", restart+1, servers, again)
			}
			if table := w.rules(); strings.Contains(table, "gone") || strings.Contains(table, "10.96.0.12") {
				t.Errorf("the table still has the service that is gone:\n%s", table)
			}
		}
		if w.settings.mode == modeIPTables {
			w.noLeak()
			return
		}
		// A table that cannot be written over (another kind of set under one of our names) is replaced.
		table := "table ip " + w.table()
		w.node.Run("nft", "delete "+table+"; add "+table+"; add set ip "+w.table()+" service-ips { type inet_service; }")
		w.sync()
		if servers, _ := w.answers(w.node, "tcp", "10.96.0.10:80", 1); servers["error"] > 0 {
			t.Errorf("after replacing the table: %v", servers)
		}
		w.noLeak()
	})
}

// TestLoopbackInKernel: nobody outside reaches what listens on the node's loopback through the proxy (CVE-2020-8558):
// it leaves route_localnet off, and node ports are not served at loopback addresses, however wide --nodeport-addresses
// is.
func TestLoopbackInKernel(t *testing.T) {
	inEachMode(t, func(t *testing.T, w *world) {
		wide := *w.settings
		wide.nodePortAddresses = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
		w.start(&wide)
		w.node.Serve("secret", "127.0.0.1:9090")
		w.service("web", "10.96.0.10", func(s *corev1.ServiceSpec) {
			s.Type, s.Ports[0].NodePort, s.Ports[1].NodePort = corev1.ServiceTypeNodePort, 30080, 30080
		}, "10.244.1.2")
		for _, dev := range []string{"all", "default", "v1722002"} {
			if got := strings.TrimSpace(
				w.node.Run("sysctl", "-n", "net.ipv4.conf."+dev+".route_localnet")); got != "0" {
				t.Errorf("route_localnet of %s is %s", dev, got)
			}
		}
		if servers, _ := w.answers(w.node, "tcp", "172.20.0.1:30080", 1); servers["one"] != 1 {
			t.Errorf("the node port at the node's address: %v", servers)
		}
		if _, _, err := w.node.Ask("tcp", "127.0.0.1:30080"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("the node port at loopback: %v, want refused", err)
		}
		// The neighbour sends packets for 127.0.0.1 out of its own loopback.
		w.outside.Run("sysctl", "-qw", "net.ipv4.conf.all.route_localnet=1")
		w.outside.IP("addr", "del", "127.0.0.1/8", "dev", "lo")
		w.outside.IP("route", "add", "127.0.0.1/32", "via", "172.20.0.1", "dev", "eth0", "src", "172.20.0.2")
		for _, network := range []string{"tcp", "udp"} {
			for _, port := range []string{"9090", "30080"} {
				if server, _, err := w.outside.Ask(network, "127.0.0.1:"+port); err == nil {
					t.Errorf("from outside to 127.0.0.1:%s over %s: %s answered", port, network, server)
				}
			}
		}
	})
}

// TestStaleUDPInKernel: a UDP client that keeps sending from one port is moved when its endpoint goes, and when a
// service gets its first endpoint.
func TestStaleUDPInKernel(t *testing.T) {
	inEachMode(t, func(t *testing.T, w *world) {
		w.service("dns", "10.96.0.10", nil, "10.244.1.2")
		var c net.Conn
		w.outside.Do(func() {
			var err error
			if c, err = net.Dial("udp", "10.96.0.10:80"); err != nil {
				t.Error(err)
			}
		})
		if t.Failed() {
			return
		}
		defer c.Close()
		if server, _, err := netnstest.Exchange(c); server != "one" || err != nil {
			t.Fatalf("first: %q, %v", server, err)
		}
		w.endpoints("dns", "10.244.1.6")
		if server, _, err := netnstest.Exchange(c); server != "two" || err != nil {
			t.Errorf("after the endpoint went: %q, %v", server, err)
		}
		w.endpoints("dns")
		if _, _, err := netnstest.Exchange(c); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("without endpoints: %v, want refused", err)
		}
		w.endpoints("dns", "10.244.1.2")
		if server, _, err := netnstest.Exchange(c); server != "one" || err != nil {
			t.Errorf("with an endpoint again: %q, %v", server, err)
		}
	})
}

// TestRepairInKernel: what others break is repaired by the next round, and a clean-up leaves nothing.
func TestRepairInKernel(t *testing.T) {
	inEachMode(t, func(t *testing.T, w *world) {
		w.service("web", "10.96.0.10", nil, "10.244.1.2")
		w.node.Run("nft", "flush", "ruleset")
		w.sync()
		if servers, _ := w.answers(w.two, "tcp", "10.96.0.10:80", 1); servers["one"] != 1 {
			t.Errorf("after repair: %v", servers)
		}
		w.node.Do(func() {
			if err := cleanup(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if got := w.node.Run("nft", "list", "ruleset"); strings.Contains(got, "kube-proxy") ||
			strings.Contains(got, "KUBE-") {
			t.Errorf("rules after the clean-up:\n%s", got)
		}
	})
}

// TestOtherModeInKernel: a proxy in another mode than the one before takes that one's rules away, and Services work by
// its own.
func TestOtherModeInKernel(t *testing.T) {
	inEachMode(t, func(t *testing.T, w *world) {
		w.service("web", "10.96.0.10", nil, "10.244.1.2")
		other := *w.settings
		other.mode = map[string]string{modeNFTables: modeIPTables, modeIPTables: modeNFTables,
			modeIPVS: modeNFTables}[w.settings.mode]
		w.start(&other)
		w.node.Do(func() {
			if err := other.removeOtherModes(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if got := w.node.Run("nft", "list", "ruleset"); strings.Contains(got, "kube-proxy") ||
			strings.Contains(got, "KUBE-") {
			t.Errorf("rules of mode %s are left:\n%s", w.settings.mode, got)
		}
		w.state.Again(slices.Values([]proxy.Name{{Namespace: "default", Name: "web"}}))
		w.sync()
		if servers, _ := w.answers(w.two, "tcp", "10.96.0.10:80", 3); servers["one"] != 3 {
			t.Errorf("in mode %s: %v", other.mode, servers)
		}
	})
}
