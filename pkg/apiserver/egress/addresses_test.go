package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// TestManyAddresses: of a name with very many addresses the first are tried, and one that does not answer leaves time
// for the next.
func TestManyAddresses(t *testing.T) {
	t.Parallel()
	names := nameServer(t)
	var remaining []time.Duration
	down := errors.New("the proxy is down")
	through := Dialer{AllowLocal: true, resolver: names}
	through.Through = func(ctx context.Context, _, _ string) (net.Conn, error) {
		deadline, _ := ctx.Deadline()
		remaining = append(remaining, time.Until(deadline))
		return nil, down
	}
	if _, err := through.DialContext(t.Context(), "tcp", "192.0.2.1.40.example:1"); !errors.Is(err, down) {
		t.Error(err)
	}
	if len(remaining) != maxAddresses {
		t.Fatalf("the proxy was asked for %d of 40 addresses, want %d", len(remaining), maxAddresses)
	}
	if most := dialTimeout / maxAddresses; remaining[0] > most {
		t.Errorf("the first address has %v, want at most %v", remaining[0], most)
	}
	if last := remaining[len(remaining)-1]; last < dialTimeout/2 {
		t.Errorf("the last address has %v, want what the others left of %v", last, dialTimeout)
	}

	// Directly, somebody listens at one of the addresses.
	direct := Dialer{AllowLocal: true, resolver: names}
	for at, want := range map[int]bool{1: true, maxAddresses: true, maxAddresses + 1: false, 40: false} {
		l, err := net.Listen("tcp", fmt.Sprintf("127.77.%d.%d:0", at, at))
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		conn, err := direct.DialContext(t.Context(), "tcp", fmt.Sprintf("127.77.%d.1.40.example:%s", at, port))
		if (err == nil) != want {
			t.Errorf("address %d of 40: %v, want connected %v", at, err, want)
		}
		if err == nil {
			conn.Close()
		}
		l.Close()
	}
}

// nameServer resolves A.B.C.D.N.example to the N IPv4 addresses from A.B.C.D on, in this order.
func nameServer(t *testing.T) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		question := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(question)
			if err != nil {
				return // the test has ended
			}
			if reply, err := answer(question[:n]); err != nil {
				t.Error(err)
			} else if _, err := server.WriteTo(reply, from); err != nil {
				t.Error(err)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// answer answers one question.
func answer(question []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil {
		return nil, err
	}
	m.Response, m.Additionals = true, nil
	q := m.Questions[0]
	if q.Type == dnsmessage.TypeA {
		parts := strings.SplitN(q.Name.String(), ".", 5)
		var n int
		if _, err := fmt.Sscanf(parts[4], "%d.example.", &n); err != nil {
			return nil, err
		}
		a, err := netip.ParseAddr(strings.Join(parts[:4], "."))
		if err != nil {
			return nil, err
		}
		for ; n > 0; n-- {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
				Body:   &dnsmessage.AResource{A: a.As4()}})
			a = a.Next()
		}
	}
	return m.Pack()
}
