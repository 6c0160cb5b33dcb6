package conntrack

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/proxy"
)

func ap(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

func aps(list ...string) []netip.AddrPort {
	var out []netip.AddrPort
	for _, a := range list {
		out = append(out, ap(a))
	}
	return out
}

// udp is a port at a cluster address with endpoints.
func udp(at string, endpoints ...string) proxy.Port {
	return proxy.Port{Protocol: corev1.ProtocolUDP, ClusterIP: ap(at).Addr(), Number: ap(at).Port(),
		Cluster: aps(endpoints...)}
}

// flow goes to dst and is answered by endpoint; IPv4 addresses come as the kernel's dump gives them.
func flow(dst, endpoint string) *netlink.ConntrackFlow {
	d, e, client := ap(dst), ap(endpoint), "10.9.9.9"
	if d.Addr().Is6() {
		client = "fd09::9"
	}
	return &netlink.ConntrackFlow{
		FamilyType: family(d), TimeOut: 60,
		Forward: netlink.IPTuple{Protocol: unix.IPPROTO_UDP, SrcIP: net.ParseIP(client), SrcPort: 4000,
			DstIP: net.IP(d.Addr().AsSlice()), DstPort: d.Port()},
		Reverse: netlink.IPTuple{Protocol: unix.IPPROTO_UDP, SrcIP: net.IP(e.Addr().AsSlice()), SrcPort: e.Port(),
			DstIP: net.ParseIP(client), DstPort: 4000},
	}
}

func family(a netip.AddrPort) uint8 {
	if a.Addr().Is6() {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

// kernel is a table in memory: it keeps flows, and fails as often as told.
type kernel struct {
	flows    [][2]string
	failures int
	searched []netlink.InetFamily
}

func (k *kernel) forget(f netlink.InetFamily, filter netlink.CustomConntrackFilter) error {
	k.searched = append(k.searched, f)
	if k.failures > 0 {
		k.failures--
		return errors.New("interrupted")
	}
	k.flows = slices.DeleteFunc(k.flows, func(p [2]string) bool {
		return family(ap(p[0])) == uint8(f) && filter.MatchConntrackFlow(flow(p[0], p[1]))
	})
	return nil
}

func (k *kernel) table() *Table {
	t := New(own)
	t.forget = k.forget
	return t
}

// own are where node ports are taken by the node's own addresses alone.
func own(own []netip.Addr) ([]netip.Addr, error) { return own, nil }

var web, dns = proxy.Name{Namespace: "ns", Name: "web"}, proxy.Name{Namespace: "ns", Name: "dns"}

// update names changed services.
func update(name proxy.Name, ports ...proxy.Port) proxy.Update {
	return proxy.Update{Services: map[proxy.Name][]proxy.Port{name: ports},
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}}
}

// TestApply: after a round before and a round now, which flows to the service are left?
func TestApply(t *testing.T) {
	t.Parallel()
	const at, six = "10.96.0.10:53", "[fd00:96::10]:53"
	tcp := udp(at, "10.1.0.2:53")
	tcp.Protocol = corev1.ProtocolTCP
	exposed := func(p proxy.Port) proxy.Port {
		p.NodePort = 30053
		p.ExternalIPs, p.LoadBalancerIPs = []netip.Addr{netip.MustParseAddr("198.51.100.1")},
			[]netip.Addr{netip.MustParseAddr("198.51.100.2")}
		return p
	}
	local := udp(at)
	local.Local = aps("10.1.0.7:53")
	for _, c := range []struct {
		name     string
		then, is []proxy.Port
		flows    [][2]string
		left     int // the first so many
		families int // in the second round
	}{
		{"endpoint stays", []proxy.Port{udp(at, "10.1.0.1:53")}, []proxy.Port{udp(at, "10.1.0.1:53", "10.1.0.2:53")},
			[][2]string{{at, "10.1.0.1:53"}}, 1, 1},
		{"endpoint gone", []proxy.Port{udp(at, "10.1.0.1:53", "10.1.0.2:53")}, []proxy.Port{udp(at, "10.1.0.2:53")},
			[][2]string{{at, "10.1.0.2:53"}, {at, "10.1.0.1:53"}}, 1, 1},
		{"endpoint's port changed", []proxy.Port{udp(at, "10.1.0.1:53")}, []proxy.Port{udp(at, "10.1.0.1:54")},
			[][2]string{{at, "10.1.0.1:53"}}, 0, 1},
		{"first endpoint: what nobody translated is stale", nil, []proxy.Port{udp(at, "10.1.0.1:53")},
			[][2]string{{at, at}}, 0, 1},
		{"service gone", []proxy.Port{udp(at, "10.1.0.1:53")}, nil, [][2]string{{at, "10.1.0.1:53"}}, 0, 1},
		{"service moved", []proxy.Port{udp(at, "10.1.0.1:53")}, []proxy.Port{udp("10.96.0.11:53", "10.1.0.1:53")},
			[][2]string{{"10.96.0.11:53", "10.1.0.1:53"}, {at, "10.1.0.1:53"}}, 1, 1},
		{"UDP became TCP", []proxy.Port{udp(at, "10.1.0.1:53")}, []proxy.Port{tcp}, [][2]string{{at, "10.1.0.1:53"}}, 0,
			1},
		{"TCP is no matter", []proxy.Port{tcp}, []proxy.Port{tcp}, [][2]string{{at, "10.1.0.1:53"}}, 1, 0},
		{"strangers' flows", nil, []proxy.Port{udp(at, "10.1.0.1:53")},
			[][2]string{{"10.96.0.10:54", "10.1.0.9:53"}, {"10.1.0.5:53", "10.1.0.5:53"}}, 2, 1},
		{"endpoint on this node, for policy Local", []proxy.Port{local}, []proxy.Port{local},
			[][2]string{{at, "10.1.0.7:53"}}, 1, 1},
		{"every address", []proxy.Port{exposed(udp(at, "10.1.0.1:53"))}, []proxy.Port{exposed(udp(at, "10.1.0.2:53"))},
			[][2]string{
				{"192.0.2.1:30053", "10.1.0.2:53"}, {"192.0.2.1:30053", "10.1.0.1:53"},
				{"198.51.100.1:53", "10.1.0.1:53"},
				{"198.51.100.2:53", "10.1.0.1:53"}}, 1, 1},
		{"a node port of the other family is not ours", []proxy.Port{exposed(udp(at, "10.1.0.1:53"))}, nil,
			[][2]string{{"[2001:db8::1]:30053", "[fd01::1]:53"}}, 1, 1},
		{"IPv6", []proxy.Port{udp(six, "[fd01::1]:53")}, []proxy.Port{udp(six, "[fd01::2]:53")},
			[][2]string{{six, "[fd01::2]:53"}, {six, "[fd01::1]:53"}}, 1, 1},
		{"both families", []proxy.Port{udp(at, "10.1.0.1:53"), udp(six, "[fd01::1]:53")}, nil,
			[][2]string{{at, "10.1.0.1:53"}, {six, "[fd01::1]:53"}}, 0, 2},
	} {
		k := &kernel{}
		table := k.table()
		if err := table.Apply(t.Context(), update(web, c.then...)); err != nil {
			t.Fatal(err)
		}
		k.flows, k.searched = slices.Clone(c.flows), nil
		if err := table.Apply(t.Context(), update(web, c.is...)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(k.flows, c.flows[:c.left]) || len(k.searched) != c.families {
			t.Errorf("%s: left %v of families %v, want %v of %d", c.name, k.flows, k.searched, c.flows[:c.left],
				c.families)
		}
		k.searched = nil
		if err := table.Apply(t.Context(), proxy.Update{}); err != nil || len(k.searched) != 0 {
			t.Errorf("%s: a round without changes searched %v, %v", c.name, k.searched, err)
		}
	}
}

// TestAnAddressHandedOn: what one service gave up and another has is judged by the other's endpoints.
func TestAnAddressHandedOn(t *testing.T) {
	t.Parallel()
	shared := netip.MustParseAddr("198.51.100.1")
	port := func(at, endpoint string) proxy.Port {
		p := udp(at, endpoint)
		p.ExternalIPs = []netip.Addr{shared}
		return p
	}
	k := &kernel{}
	table := k.table()
	for _, u := range []proxy.Update{update(web, port("10.96.0.1:53", "10.1.0.1:53")),
		update(dns, port("10.96.0.2:53", "10.1.0.2:53"))} {
		if err := table.Apply(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	k.flows = [][2]string{{"198.51.100.1:53", "10.1.0.2:53"}, {"198.51.100.1:53", "10.1.0.1:53"}}
	if err := table.Apply(t.Context(), update(web)); err != nil ||
		!slices.Equal(k.flows, [][2]string{{"198.51.100.1:53", "10.1.0.2:53"}}) {
		t.Errorf("left %v, %v", k.flows, err)
	}
}

// TestNodePortsElsewhere: a node port that all of the machine's addresses take has stale flows at all of them.
func TestNodePortsElsewhere(t *testing.T) {
	t.Parallel()
	k := &kernel{}
	table := k.table()
	fails := false
	table.nodePorts = func(own []netip.Addr) ([]netip.Addr, error) {
		if fails {
			return nil, errors.New("interrupted")
		}
		return append(own, netip.MustParseAddr("10.244.1.1")), nil
	}
	port := func(endpoint string) proxy.Port {
		p := udp("10.96.0.1:53", endpoint)
		p.NodePort = 30053
		return p
	}
	if err := table.Apply(t.Context(), update(web, port("10.1.0.1:53"))); err != nil {
		t.Fatal(err)
	}
	k.flows = [][2]string{{"192.0.2.1:30053", "10.1.0.1:53"}, {"10.244.1.1:30053", "10.1.0.1:53"},
		{"192.0.2.7:30053", "10.1.0.1:53"}}
	if err := table.Apply(t.Context(), update(web, port("10.1.0.2:53"))); err != nil ||
		!slices.Equal(k.flows, [][2]string{{"192.0.2.7:30053", "10.1.0.1:53"}}) {
		t.Errorf("left %v, %v, want the flow to another node alone", k.flows, err)
	}
	k.flows, fails = [][2]string{{"10.244.1.1:30053", "10.1.0.2:53"}}, true
	if err := table.Apply(t.Context(), update(web, port("10.1.0.3:53"))); err == nil || len(k.flows) != 0 {
		t.Errorf("left %v, %v, want the addresses of the last round and an error", k.flows, err)
	}
}

// TestFailedSearchIsMadeUpFor: the next Update names only what changed since.
func TestFailedSearchIsMadeUpFor(t *testing.T) {
	t.Parallel()
	k := &kernel{}
	table := k.table()
	for _, u := range []proxy.Update{update(web, udp("10.96.0.1:53", "10.1.0.1:53")),
		update(dns, udp("10.96.0.2:53", "10.1.0.2:53"))} {
		if err := table.Apply(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	k.flows, k.failures = [][2]string{{"10.96.0.1:53", "10.1.0.9:53"}, {"10.96.0.1:53", "10.1.0.1:53"},
		{"10.96.0.2:53", "10.1.0.2:53"}}, 2
	for _, u := range []proxy.Update{update(web, udp("10.96.0.1:53", "10.1.0.9:53")), update(dns)} {
		if err := table.Apply(t.Context(), u); err == nil {
			t.Fatal("the kernel's error was lost")
		}
	}
	if err := table.Apply(t.Context(), proxy.Update{}); err != nil ||
		!slices.Equal(k.flows, [][2]string{{"10.96.0.1:53", "10.1.0.9:53"}}) {
		t.Errorf("left %v, %v, want only the flow to the endpoint of now", k.flows, err)
	}
}

func TestOtherProtocolsAreLeftAlone(t *testing.T) {
	t.Parallel()
	f := newFilter(map[netip.AddrPort]bool{ap("10.96.0.10:53"): true})
	stale := flow("10.96.0.10:53", "10.1.0.1:53")
	if !f.MatchConntrackFlow(stale) {
		t.Error("a stale UDP flow is kept")
	}
	stale.Forward.DstIP = net.ParseIP("10.96.0.10") // in 16 bytes
	if !f.MatchConntrackFlow(stale) {
		t.Error("the form of an address made a difference")
	}
	stale.Forward.Protocol = unix.IPPROTO_TCP
	if f.MatchConntrackFlow(stale) {
		t.Error("a TCP flow to the same address would be cut")
	}
}

// TestKernel deletes real entries, in a network namespace of its own.
func TestKernel(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: making a network namespace needs root")
	}
	// The thread is not unlocked: it ends with this goroutine, and its namespace with it.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("SKIPPED: no network namespace: %v", err)
	}
	const at, six = "10.96.0.10:53", "[fd00:96::10]:53"
	flows := [][2]string{{at, "10.1.0.1:53"}, {"10.96.0.11:53", "10.1.0.3:53"}, {six, "[fd01::1]:53"}}
	for _, f := range flows {
		if err := netlink.ConntrackCreate(netlink.ConntrackTable, netlink.InetFamily(family(ap(f[0]))),
			flow(f[0], f[1])); err != nil {
			if slices.ContainsFunc([]error{unix.EPERM, unix.EOPNOTSUPP, unix.EPROTONOSUPPORT, unix.ENOENT},
				func(e error) bool {
					return errors.Is(err, e)
				}) {
				t.Skipf("SKIPPED: entries of the kernel's table cannot be made here: %v", err)
			}
			t.Fatalf("making the entry %v: %v", f, err)
		}
	}
	if err := New(own).Apply(t.Context(), update(web, udp(at, "10.1.0.2:53"), udp(six, "[fd01::1]:53"))); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		list, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			left = append(left, addrPort(f.Forward.DstIP, f.Forward.DstPort).String())
		}
	}
	if want := []string{"10.96.0.11:53", six}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
}
