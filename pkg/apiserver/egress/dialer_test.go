package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/apiserver/egress/egresstest"
)

// TestAllow: nothing goes to the machine itself, by whatever address it has, unless it is known to be a node.
func TestAllow(t *testing.T) {
	t.Parallel()
	never := func(context.Context, netip.Addr) bool { return false }
	always := func(context.Context, netip.Addr) bool { return true }
	for _, text := range []string{"127.0.0.1", "::1", "0.0.0.0", "169.254.169.254", "fe80::1", "224.0.0.1",
		"255.255.255.255", "::ffff:127.0.0.1"} {
		a := netip.MustParseAddr(text)
		for _, d := range []Dialer{{}, {AllowOwn: never}, {AllowOwn: always}} {
			if d.Allow(t.Context(), a) == nil {
				t.Errorf("%s is allowed", a)
			}
		}
		if err := (Dialer{AllowLocal: true}).Allow(t.Context(), a); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
	if err := (Dialer{}).Allow(t.Context(), netip.MustParseAddr("192.0.2.77")); err != nil {
		t.Errorf("another machine: %v", err)
	}
	own := egresstest.OwnAddress(t)
	for name, c := range map[string]struct {
		d    Dialer
		want bool
	}{"nobody says": {Dialer{}, false}, "no node": {Dialer{AllowOwn: never}, false},
		"a node": {Dialer{AllowOwn: always}, true}, "tests": {Dialer{AllowLocal: true}, true}} {
		if err := c.d.Allow(t.Context(), own); (err == nil) != c.want {
			t.Errorf("%s, %s: %v", name, own, err)
		}
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", netip.AddrPortFrom(own, 0).String())
		if err != nil {
			t.Fatal(err)
		}
		conn, err := c.d.DialContext(t.Context(), "tcp", l.Addr().String())
		if (err == nil) != c.want {
			t.Errorf("%s, connecting to %s: %v", name, own, err)
		}
		if err == nil {
			conn.Close()
		}
		l.Close()
	}
}

// TestThrough: a proxy is given the addresses that are allowed, and no name: what names lead to is checked here. One
// that fails is followed by the next.
func TestThrough(t *testing.T) {
	t.Parallel()
	own := egresstest.OwnAddress(t)
	var asked []string
	down := errors.New("the proxy is down")
	d := Dialer{Through: func(_ context.Context, network, addr string) (net.Conn, error) {
		asked = append(asked, network+" "+addr)
		return nil, down
	}}
	for _, addr := range []string{"127.0.0.1:1", "[::1]:1", "localhost:1", "169.254.169.254:80", "0.0.0.0:1",
		"[::ffff:127.0.0.1]:1", netip.AddrPortFrom(own, 1).String()} {
		if _, err := d.DialContext(t.Context(), "tcp", addr); err == nil ||
			!strings.Contains(err.Error(), "address not allowed") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if _, err := d.DialContext(t.Context(), "tcp", "no-port"); err == nil {
		t.Error("an address without a port is one")
	}
	if _, err := d.DialContext(t.Context(), "tcp", "name.invalid:1"); err == nil ||
		!strings.Contains(err.Error(), "connections through an egress proxy go to addresses") {
		t.Errorf("a name that this machine does not know: %v", err)
	}
	if len(asked) > 0 {
		t.Fatalf("the proxy was asked for %v", asked)
	}
	if _, err := d.DialContext(t.Context(), "tcp", "192.0.2.77:10250"); !errors.Is(err, down) {
		t.Error(err)
	}
	if want := []string{"tcp 192.0.2.77:10250"}; !slices.Equal(asked, want) {
		t.Errorf("the proxy was asked for %v, want %v", asked, want)
	}
}
