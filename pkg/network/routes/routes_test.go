package routes

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"bonsai/pkg/network"
)

// link gives the test a network namespace of its own with one link, whose networks are 192.0.2.0/24 and fd00:2::/64.
func link(t *testing.T) netlink.Link {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: making a network namespace needs root")
	}
	// The thread is not unlocked: it ends with this goroutine, and its namespace with it.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("SKIPPED: no network namespace: %v", err)
	}
	// A veth pair works where the kernel has no dummy links.
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}); err != nil {
		t.Skipf("SKIPPED: no link can be made: %v", err)
	}
	var out netlink.Link
	for _, name := range []string{"b", "a"} {
		l, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetUp(l); err != nil {
			t.Fatal(err)
		}
		out = l
	}
	for _, text := range []string{"192.0.2.1/24", "fd00:2::1/64"} {
		a, err := netlink.ParseAddr(text)
		if err != nil {
			t.Fatal(err)
		}
		a.Flags = unix.IFA_F_NODAD
		if err := netlink.AddrAdd(out, a); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// to reads "10.1.1.0/24 192.0.2.2".
func to(pairs ...string) network.Update {
	u := network.Update{Routes: map[netip.Prefix]netip.Addr{}}
	for _, p := range pairs {
		cidr, gw, _ := strings.Cut(p, " ")
		u.Routes[netip.MustParsePrefix(cidr)] = netip.MustParseAddr(gw)
	}
	return u
}

// ours are the routes with our mark, as to takes them, in order.
func ours(t *testing.T) []string {
	t.Helper()
	have, err := list()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, cidr := range slices.SortedFunc(maps.Keys(have), netip.Prefix.Compare) {
		out = append(out, fmt.Sprintf("%s %s", cidr, have[cidr]))
	}
	return out
}

func TestApply(t *testing.T) {
	l := link(t)
	const a, b, six = "10.1.1.0/24 192.0.2.2", "10.1.2.0/24 192.0.2.3", "fd01:1::/64 fd00:2::2"
	for i, c := range []struct {
		what string
		set  []string
	}{
		{"the first", []string{a}},
		{"more, of both families", []string{a, b, six}},
		{"the same", []string{a, b, six}},
		{"another gateway", []string{"10.1.1.0/24 192.0.2.4", b, six}},
		{"one node gone", []string{b, six}},
		{"one host", []string{"10.1.9.9/32 192.0.2.2"}},
		{"none", nil},
	} {
		if err := Apply(to(c.set...)); err != nil {
			t.Fatalf("step %d, %s: %v", i, c.what, err)
		}
		if got := ours(t); !slices.Equal(got, c.set) {
			t.Errorf("step %d, %s: %v, want %v", i, c.what, got, c.set)
		}
	}

	// What others broke is repaired, what is theirs is left alone.
	theirs := &netlink.Route{LinkIndex: l.Attrs().Index,
		Dst: &net.IPNet{IP: net.IPv4(10, 2, 0, 0).To4(), Mask: net.CIDRMask(24, 32)}, Gw: net.IPv4(192, 0, 2, 9)}
	if err := netlink.RouteAdd(theirs); err != nil {
		t.Fatal(err)
	}
	if err := Apply(to(a, b)); err != nil {
		t.Fatal(err)
	}
	if err := netlink.RouteDel(
		route(netip.MustParsePrefix("10.1.1.0/24"), netip.MustParseAddr("192.0.2.2"))); err != nil {
		t.Fatal(err)
	}
	if err := Apply(to(a, b)); err != nil || !slices.Equal(ours(t), []string{a, b}) {
		t.Errorf("after another deleted a route: %v, %v", ours(t), err)
	}

	// One that cannot be set does not keep the others from being set.
	err := Apply(to("10.1.0.0/24 203.0.113.1", b, "10.1.3.0/24 192.0.2.5"))
	if err == nil || !strings.Contains(err.Error(), "set the route to 10.1.0.0/24 by 203.0.113.1") {
		t.Errorf("a gateway that no link leads to: %v", err)
	}
	if got, want := ours(t), []string{b, "10.1.3.0/24 192.0.2.5"}; !slices.Equal(got, want) {
		t.Errorf("beside it: %v, want %v", got, want)
	}

	for range 2 { // taking away twice is fine
		if err := Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if got := ours(t); got != nil {
		t.Errorf("left behind: %v", got)
	}
	rest, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Dst: theirs.Dst}, netlink.RT_FILTER_DST)
	if err != nil || len(rest) != 1 {
		t.Errorf("another's route: %v, %v", rest, err)
	}
}

// TestApplyBehindARouter: pods of a node that is on none of the node's networks are reached by the way to it.
func TestApplyBehindARouter(t *testing.T) {
	link(t)
	_, far, err := net.ParseCIDR("10.77.0.0/24")
	if err != nil {
		t.Fatal(err)
	}
	way := func(gw string) *netlink.Route { return &netlink.Route{Dst: far, Gw: net.ParseIP(gw)} }
	const node = "10.1.1.0/24 10.77.0.11"
	if err := Apply(to(node)); err == nil {
		t.Errorf("there is no way, and no error: %v", ours(t))
	}
	for _, gw := range []string{"192.0.2.7", "192.0.2.7", "192.0.2.8"} {
		if err := netlink.RouteReplace(way(gw)); err != nil {
			t.Fatal(err)
		}
		if err := Apply(to(node)); err != nil {
			t.Error(err)
		}
		if got := ours(t); !slices.Equal(got, []string{"10.1.1.0/24 " + gw}) {
			t.Errorf("by %s: %v", gw, got)
		}
	}
	if err := Remove(); err != nil || len(ours(t)) > 0 {
		t.Errorf("%v, %v", ours(t), err)
	}
}
