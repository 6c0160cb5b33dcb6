package ipvs_test

import (
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/knftables"

	"bonsai/pkg/proxy"
	"bonsai/pkg/proxy/ipvs"
	"bonsai/pkg/safetext"
)

// node is a node's IPv4 Services in a fake kernel.
type node struct {
	t      *testing.T
	kernel *fakeKernel
	rules  *knftables.Fake
	config ipvs.Config
	table  *ipvs.Table
	now    time.Time
}

func newNode(t *testing.T, change func(*ipvs.Config)) *node {
	t.Helper()
	n := &node{t: t, kernel: newFakeKernel(t), rules: knftables.NewFake(knftables.IPv4Family, "kube-proxy-ipvs"),
		now: time.Unix(0, 0)}
	n.config = ipvs.Config{Scheduler: "rr", ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")},
		NodePorts: func(own []netip.Addr) ([]netip.Addr, error) { return own, nil },
		Now:       func() time.Time { return n.now }}
	if change != nil {
		change(&n.config)
	}
	n.restart()
	return n
}

// restart starts another proxy on the same kernel.
func (n *node) restart() {
	n.table = ipvs.New(n.kernel, n.rules, false, n.config, slog.New(slog.DiscardHandler))
}

func (n *node) try(services map[proxy.Name][]proxy.Port) error {
	return n.table.Apply(n.t.Context(), proxy.Update{Services: services,
		Addresses:    []netip.Addr{netip.MustParseAddr("192.0.2.1")},
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}})
}

// apply returns what the kernel was told to do.
func (n *node) apply(services map[proxy.Name][]proxy.Port) []string {
	n.t.Helper()
	n.kernel.did = nil
	if err := n.try(services); err != nil {
		n.t.Fatal(err)
	}
	return n.kernel.did
}

func (n *node) wantRule(rules ...string) {
	n.t.Helper()
	dump := n.rules.Dump()
	for _, rule := range rules {
		if !strings.Contains(dump, rule) {
			n.t.Errorf("no %q in\n%s", rule, dump)
		}
	}
}

func name(text string) proxy.Name { return proxy.Name{Namespace: "default", Name: text} }

// service is a service with one TCP port and these endpoints.
func service(text, ip string, change func(*proxy.Port), endpoints ...string) map[proxy.Name][]proxy.Port {
	p := proxy.Port{Service: name(text), Protocol: corev1.ProtocolTCP, ClusterIP: netip.MustParseAddr(ip), Number: 80}
	for _, e := range endpoints {
		p.Cluster = append(p.Cluster, netip.MustParseAddrPort(e))
		p.Anywhere = true
	}
	if change != nil {
		change(&p)
	}
	return map[proxy.Name][]proxy.Port{p.Service: {p}}
}

func key(at string) ipvs.Key { return ipvs.Key{At: netip.MustParseAddrPort(at), Protocol: "tcp"} }

// TestServiceComesAndGoes: real servers are there before packets come, and none comes any more when the virtual server
// goes.
func TestServiceComesAndGoes(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	want := []string{"create 10.96.0.1:80", "create 10.96.0.1:80->10.244.0.2:80", "create 10.96.0.1:80->10.244.1.2:80",
		"bind 10.96.0.1"}
	if did := n.apply(service("web", "10.96.0.1", func(p *proxy.Port) { p.Here = p.Cluster[:1] }, "10.244.0.2:80",
		"10.244.1.2:80")); !slices.Equal(did, want) {
		t.Errorf("%q, want %q", did, want)
	}
	n.wantRule("add element ip kube-proxy-ipvs virtual-servers { 10.96.0.1 . tcp . 80 }",
		"masqueraded-services { 10.96.0.1 . tcp . 80 : jump mark-others }",
		"hairpin-endpoints { 10.244.0.2 . 10.244.0.2 }", "ip daddr @service-ips ct state new reject")
	if did := n.apply(nil); len(did) > 0 {
		t.Errorf("nothing changed, and the kernel had to %q", did)
	}
	n.restart()
	if did := n.apply(service("web", "10.96.0.1", nil, "10.244.0.2:80", "10.244.1.2:80")); len(did) > 0 {
		t.Errorf("after a restart: %q", did)
	}
	want = []string{"unbind 10.96.0.1", "remove 10.96.0.1:80"}
	if did := n.apply(map[proxy.Name][]proxy.Port{name("web"): nil}); !slices.Equal(did, want) {
		t.Errorf("%q, want %q", did, want)
	}
}

// TestDrain: a real server that is no endpoint any more keeps its connections, until they end or for an hour, and may
// come back. UDP's have no end.
func TestDrain(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	at, gone := key("10.96.0.1:80"), netip.MustParseAddrPort("10.244.1.2:80")
	both := service("web", "10.96.0.1", nil, "10.244.0.2:80", "10.244.1.2:80")
	one := service("web", "10.96.0.1", nil, "10.244.0.2:80")
	n.apply(both)
	connected := func(connections uint32) {
		r := n.kernel.reals[at][gone]
		r.Connections = connections
		n.kernel.reals[at][gone] = r
	}
	for _, step := range []struct {
		name        string
		connections uint32
		later       time.Duration
		services    map[proxy.Name][]proxy.Port
		want        []string
	}{
		{"it goes", 3, 0, one, []string{"weigh 10.96.0.1:80->10.244.1.2:80 0"}},
		{"connections live", 1, time.Minute, nil, nil},
		{"it comes back", 1, 0, both, []string{"weigh 10.96.0.1:80->10.244.1.2:80 1"}},
		{"it goes again", 1, 0, one, []string{"weigh 10.96.0.1:80->10.244.1.2:80 0"}},
		{"they live long", 1, 59 * time.Minute, nil, nil},
		{"too long", 1, time.Minute, nil, []string{"remove 10.96.0.1:80->10.244.1.2:80"}},
	} {
		n.now = n.now.Add(step.later)
		connected(step.connections)
		if did := n.apply(step.services); !slices.Equal(did, step.want) {
			t.Errorf("%s: %q, want %q", step.name, did, step.want)
		}
	}
	n.apply(both)
	connected(0)
	if did := n.apply(one); !slices.Equal(did, []string{"remove 10.96.0.1:80->10.244.1.2:80"}) {
		t.Errorf("without connections: %q", did)
	}
	udp := func(p *proxy.Port) { p.Protocol = corev1.ProtocolUDP }
	n = newNode(t, nil)
	n.apply(service("dns", "10.96.0.1", udp, "10.244.0.2:80", "10.244.1.2:80"))
	at.Protocol = "udp"
	connected(5)
	if did := n.apply(service("dns", "10.96.0.1", udp, "10.244.0.2:80")); !slices.Equal(did,
		[]string{"remove 10.96.0.1:80->10.244.1.2:80"}) {
		t.Errorf("UDP: %q", did)
	}
}

// TestForeign: virtual servers of others stay as they are, in the way of a Service and elsewhere, and those of an
// earlier proxy go, except at excluded addresses.
func TestForeign(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(c *ipvs.Config) { c.Exclude = []netip.Prefix{netip.MustParsePrefix("10.96.5.0/24")} })
	exposed := func(p *proxy.Port) { p.NodePort = 30080 }
	all := service("web", "10.96.0.1", exposed, "10.244.0.2:80")
	for n, ports := range service("kept", "10.96.5.1", nil, "10.244.0.2:80") {
		all[n] = ports
	}
	n.apply(all)
	for _, at := range []string{"192.0.2.1:30081", "192.0.2.9:80"} {
		n.kernel.servers[key(at)] = ipvs.Server{Scheduler: "wlc"}
		n.kernel.reals[key(at)] = map[netip.AddrPort]ipvs.Real{}
	}
	n.restart()
	n.kernel.did = nil
	err := n.try(service("other", "10.96.0.2", func(p *proxy.Port) { p.NodePort = 30081 }, "10.244.0.2:80"))
	r := &proxy.Refused{}
	if !errors.As(err, &r) || len(r.Services) != 1 ||
		!strings.Contains(err.Error(), "service default/other: virtual server 192.0.2.1 . tcp . 30081: exists") {
		t.Errorf("%v, want a refused service", err)
	}
	for at, there := range map[string]bool{"10.96.0.1:80": false, "192.0.2.1:30080": false, "10.96.0.2:80": true,
		"192.0.2.1:30081": true, "192.0.2.9:80": true, "10.96.5.1:80": true} {
		if _, is := n.kernel.servers[key(at)]; is != there {
			t.Errorf("%s: there: %v, want %v", at, is, there)
		}
	}
	if got := n.kernel.servers[key("192.0.2.1:30081")]; got.Scheduler != "wlc" {
		t.Errorf("somebody else's was changed: %+v", got)
	}
	if strings.Contains(n.rules.Dump(), "30081") {
		t.Errorf("rules for somebody else's:\n%s", n.rules.Dump())
	}
}

// TestRefusedByKernel: what the kernel does not take of one service keeps nothing of the others from being written, and
// is tried again.
func TestRefusedByKernel(t *testing.T) {
	t.Parallel()
	const broadcast, outside = "255.255.255.255", "203.0.113.255"
	for name, c := range map[string]struct {
		refuse func(*fakeKernel)
		change func(*proxy.Port)
		reals  int // of the refused service's cluster IP
	}{
		"endpoint": {func(k *fakeKernel) { k.refuses = map[netip.Addr]bool{netip.MustParseAddr(broadcast): true} },
			func(p *proxy.Port) { p.Cluster = append(p.Cluster, netip.MustParseAddrPort(broadcast+":80")) }, 1},
		"address": {func(k *fakeKernel) { k.refuses = map[netip.Addr]bool{netip.MustParseAddr(outside): true} },
			func(p *proxy.Port) { p.ExternalIPs = []netip.Addr{netip.MustParseAddr(outside)} }, 1},
		"virtual server": {func(k *fakeKernel) { k.refusesServers = map[ipvs.Key]bool{key(outside + ":80"): true} },
			func(p *proxy.Port) { p.ExternalIPs = []netip.Addr{netip.MustParseAddr(outside)} }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, nil)
			c.refuse(n.kernel)
			all := service("bad", "10.96.0.1", c.change, "10.244.0.2:80")
			maps.Copy(all, service("good", "10.96.0.2", nil, "10.244.0.3:80"))
			r := &proxy.Refused{}
			bad := proxy.Name{Namespace: "default", Name: "bad"}
			if err := n.try(all); !errors.As(err, &r) || len(r.Services) != 1 || r.Services[bad] == nil {
				t.Fatalf("%v, want the bad service refused", err)
			}
			n.wantRule("virtual-servers { 10.96.0.1 . tcp . 80 }", "virtual-servers { 10.96.0.2 . tcp . 80 }")
			if name == "virtual server" && strings.Contains(n.rules.Dump(), outside) {
				t.Errorf("rules for what is not there:\n%s", n.rules.Dump())
			}
			if !n.kernel.addresses[netip.MustParseAddr("10.96.0.2")] {
				t.Error("the good service has no address")
			}
			if got := n.kernel.reals[key("10.96.0.1:80")]; len(got) != c.reals {
				t.Errorf("the bad service has the real servers %v, want %d", got, c.reals)
			}
			n.kernel.refuses, n.kernel.refusesServers = nil, nil
			n.apply(all)
		})
	}
}

// TestRefusalsAreBounded: the error, which is logged again and again, does not grow with what a service has.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	n.kernel.refuses = map[netip.Addr]bool{netip.MustParseAddr("255.255.255.255"): true}
	err := n.try(service("bad", "10.96.0.1", func(p *proxy.Port) {
		for port := range uint16(1000) {
			p.Cluster = append(p.Cluster, netip.AddrPortFrom(netip.MustParseAddr("255.255.255.255"), port+1))
		}
	}))
	if err == nil || len(err.Error()) > 2*safetext.MaxError {
		t.Errorf("an error of %d bytes: %.200v", len(err.Error()), err)
	}
}

// TestAddressesOfTheMachine: a Service at an address that the machine has takes its port alone, and the address goes to
// Link when the machine loses it.
func TestAddressesOfTheMachine(t *testing.T) {
	t.Parallel()
	own, balancer := netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("198.51.100.8")
	n := newNode(t, nil)
	n.kernel.elsewhere = []netip.Addr{own, balancer, netip.MustParseAddr("10.96.0.1")}
	all := service("web", "10.96.0.1", func(p *proxy.Port) {
		p.ExternalIPs, p.LoadBalancerIPs = []netip.Addr{own}, []netip.Addr{balancer}
	}, "10.244.0.2:80")
	n.apply(all)
	if len(n.kernel.addresses) != 1 || !n.kernel.addresses[netip.MustParseAddr("10.96.0.1")] {
		t.Errorf("on the link are %v, want the cluster IP alone", n.kernel.addresses)
	}
	n.wantRule("virtual-servers { 198.51.100.7 . tcp . 80 }", "virtual-servers { 198.51.100.8 . tcp . 80 }")
	if dump := n.rules.Dump(); strings.Contains(dump, "service-ips { 198.51.100.") {
		t.Errorf("all ports of an address of the machine are closed:\n%s", dump)
	}
	n.kernel.elsewhere = nil
	n.apply(nil)
	if !n.kernel.addresses[own] || !n.kernel.addresses[balancer] {
		t.Errorf("on the link are %v", n.kernel.addresses)
	}
	n.wantRule("service-ips { 198.51.100.7 }")
}

// TestDecisions: what IPVS does not know is in the packet rules.
func TestDecisions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change    func(*proxy.Port)
		endpoints []string
		rules     []string
		reals     map[string]int // of virtual servers
	}{
		"none": {nil, nil, []string{"refused-services { 10.96.0.1 . tcp . 80 : jump reject-all }"},
			map[string]int{"10.96.0.1:80": 0}},
		"none here": {func(p *proxy.Port) { p.InternalLocal = true }, []string{"10.244.1.2:80"},
			[]string{"refused-services { 10.96.0.1 . tcp . 80 : jump drop-all }"}, map[string]int{"10.96.0.1:80": 0}},
		"exposed": {func(p *proxy.Port) {
			p.NodePort, p.ExternalIPs = 30080, []netip.Addr{netip.MustParseAddr("203.0.113.1")}
		}, []string{"10.244.1.2:80"}, []string{
			"masqueraded-services { 192.0.2.1 . tcp . 30080 : jump mark-for-masquerade }",
			"masqueraded-services { 203.0.113.1 . tcp . 80 : jump mark-for-masquerade }",
			"service-ips { 203.0.113.1 }"},
			map[string]int{"10.96.0.1:80": 1, "192.0.2.1:30080": 1, "203.0.113.1:80": 1}},
		"local": {func(p *proxy.Port) {
			p.NodePort, p.ExternalLocal, p.Local = 30080, true, p.Cluster[:1]
		}, []string{"10.244.0.2:80", "10.244.1.2:80"}, nil, map[string]int{"10.96.0.1:80": 2, "192.0.2.1:30080": 1}},
		"local elsewhere": {func(p *proxy.Port) { p.NodePort, p.ExternalLocal = 30080, true },
			[]string{"10.244.1.2:80"}, []string{
				"refused-services { 192.0.2.1 . tcp . 30080 : jump drop-outsiders }",
				"drop-outsiders ip saddr { 10.244.0.0/16 } return", "drop-outsiders fib saddr type local return"},
			map[string]int{"192.0.2.1:30080": 1}},
		"ranges": {func(p *proxy.Port) {
			p.LoadBalancerIPs = []netip.Addr{netip.MustParseAddr("203.0.113.1")}
			p.SourceRanges = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
		}, []string{"10.244.1.2:80"}, []string{"firewalled-services { 203.0.113.1 . tcp . 80 : jump firewall-",
			"ip saddr != { 198.51.100.0/24 } drop"}, map[string]int{"203.0.113.1:80": 1}},
	} {
		n := newNode(t, nil)
		n.apply(service("web", "10.96.0.1", c.change, c.endpoints...))
		n.wantRule(c.rules...)
		for at, want := range c.reals {
			if got := n.kernel.reals[key(at)]; got == nil || len(got) != want {
				t.Errorf("%s: %s has the real servers %v, want %d", name, at, got, want)
			}
		}
		if name == "local" && strings.Contains(n.rules.Dump(), "masqueraded-services { 192.0.2.1") {
			t.Errorf("%s: clients lose their addresses:\n%s", name, n.rules.Dump())
		}
	}
}

// TestServerSettings: affinity and the scheduler are the virtual server's, and follow their changes.
func TestServerSettings(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(c *ipvs.Config) { c.Scheduler = "mh" })
	n.apply(service("web", "10.96.0.1", nil, "10.244.0.2:80"))
	at := key("10.96.0.1:80")
	if got, want := n.kernel.servers[at], (ipvs.Server{Scheduler: "mh", HashPorts: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	n.apply(service("web", "10.96.0.1", func(p *proxy.Port) { p.AffinitySeconds = 60 }, "10.244.0.2:80"))
	if got := n.kernel.servers[at].AffinitySeconds; got != 60 {
		t.Errorf("affinity: %d seconds, want 60", got)
	}
}

// TestClaims: a new service takes no address and port of an older one, and gets them when that goes.
func TestClaims(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	shared := func(p *proxy.Port) { p.ExternalIPs = []netip.Addr{netip.MustParseAddr("203.0.113.1")} }
	n.apply(service("b", "10.96.0.2", shared, "10.244.0.2:80"))
	n.apply(service("a", "10.96.0.1", shared, "10.244.0.3:80"))
	at := key("203.0.113.1:80")
	if _, old := n.kernel.reals[at][netip.MustParseAddrPort("10.244.0.2:80")]; !old || len(n.kernel.reals[at]) != 1 {
		t.Errorf("taken: %v", n.kernel.reals[at])
	}
	n.apply(map[proxy.Name][]proxy.Port{name("b"): nil})
	if _, next := n.kernel.reals[at][netip.MustParseAddrPort("10.244.0.3:80")]; !next || len(n.kernel.reals[at]) != 1 {
		t.Errorf("not given on: %v", n.kernel.reals[at])
	}
}

// TestRepair: what others removed comes back in a round without changes, and what an error kept from being done in the
// next one.
func TestRepair(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	web := service("web", "10.96.0.1", nil, "10.244.0.2:80")
	n.kernel.fail = errors.New("the kernel said no")
	if err := n.try(web); !errors.Is(err, n.kernel.fail) {
		t.Errorf("%v, want %v", err, n.kernel.fail)
	}
	n.kernel.fail = nil
	n.apply(nil)
	at, e := key("10.96.0.1:80"), netip.MustParseAddrPort("10.244.0.2:80")
	delete(n.kernel.reals[at], e)
	clear(n.kernel.addresses)
	n.apply(nil)
	if len(n.kernel.reals[at]) != 1 || len(n.kernel.addresses) != 1 {
		t.Errorf("real servers %v, addresses %v", n.kernel.reals[at], n.kernel.addresses)
	}
	clear(n.kernel.servers)
	clear(n.kernel.reals)
	n.apply(nil)
	if len(n.kernel.reals[at]) != 1 {
		t.Errorf("real servers %v", n.kernel.reals[at])
	}
}
