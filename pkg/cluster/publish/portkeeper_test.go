package publish

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"bonsai/pkg/cluster/plan"
)

// TestPortKeeper: ports are published and ended while others go on; one that is taken changes nothing else.
func TestPortKeeper(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	k := NewPortKeeper(slog.New(slog.DiscardHandler))
	k.LeadTo([]netip.Addr{netip.MustParseAddr("127.0.0.1")}) // where nobody answers
	one, two := mappingTo(t, 30080), mappingTo(t, 30081)
	open := func(m plan.PortMapping) bool {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", m.Listens().String())
		if err != nil {
			return false
		}
		conn.Close()
		return true
	}
	look := func(what string, first, second bool) {
		t.Helper()
		if open(one) != first || open(two) != second {
			t.Errorf("%s: %v and %v are published", what, open(one), open(two))
		}
	}
	taken, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	at := netip.MustParseAddrPort(taken.Addr().String())
	for _, step := range []struct {
		what          string
		mappings      []plan.PortMapping
		fails         bool
		first, second bool
	}{
		{"one", []plan.PortMapping{one}, false, true, false},
		{"another one beside it", []plan.PortMapping{one, two}, false, true, true},
		{"the first one gone", []plan.PortMapping{two}, false, false, true},
		{"a taken port", []plan.PortMapping{one, two, {Address: at.Addr(), HostPort: int(at.Port()), NodePort: 30082}},
			true, false, true},
		{"another node port", []plan.PortMapping{{Address: two.Address, HostPort: two.HostPort, NodePort: 30099}},
			false, false, true},
		{"none", nil, false, false, false},
		{"both again", []plan.PortMapping{one, two}, false, true, true},
	} {
		if err := k.Keep(ctx, step.mappings); (err != nil) != step.fails {
			t.Fatalf("%s: %v", step.what, err)
		}
		look(step.what, step.first, step.second)
	}
	stop()
	k.Wait()
	if l, err := net.Listen("tcp", one.Listens().String()); err != nil {
		t.Errorf("the port is still taken: %v", err)
	} else {
		l.Close()
	}
}

// mappingTo publishes a node port at a free port of loopback.
func mappingTo(t *testing.T, nodePort int) plan.PortMapping {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := netip.MustParseAddrPort(l.Addr().String())
	return plan.PortMapping{Address: at.Addr(), HostPort: int(at.Port()), NodePort: nodePort}
}
