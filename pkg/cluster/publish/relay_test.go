package publish

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// dnsServer answers every question for an A record with the address, over UDP and TCP, or stays silent if it has none.
func dnsServer(t *testing.T, address string) (udp, tcp string) {
	t.Helper()
	answer := func(question []byte) []byte {
		var m dnsmessage.Message
		if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
			return nil
		}
		m.Response, m.Additionals = true, nil
		if m.Questions[0].Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{
				{Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET, TTL: 1},
					Body: &dnsmessage.AResource{A: netip.MustParseAddr(address).As4()}}}
		}
		out, err := m.Pack()
		if err != nil {
			t.Error(err)
		}
		return out
	}
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close(); listener.Close() })
	go func() {
		for buffer := make([]byte, 4096); ; {
			n, from, err := socket.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			if address != "" {
				_, _ = socket.WriteToUDPAddrPort(answer(buffer[:n]), from)
			}
		}
	}()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buffer := make([]byte, 4096)
				if n, err := conn.Read(buffer); err == nil && n > 2 && address != "" {
					out := answer(buffer[2:n])
					_, _ = conn.Write(slices.Concat([]byte{byte(len(out) >> 8), byte(len(out))}, out))
				}
			}()
		}
	}()
	return socket.LocalAddr().String(), listener.Addr().String()
}

// TestResolverRelay: nodes are answered by the servers that the host has at the time of each question, whatever it was
// when the relay began; a silent server is passed over; without any the answer is that there is none, at once.
func TestResolverRelay(t *testing.T) {
	t.Parallel()
	servers := map[string][2]string{}
	for at, answers := range map[string]string{"192.0.2.1": "198.51.100.1", "192.0.2.2": "198.51.100.2",
		"192.0.2.3": ""} {
		udp, tcp := dnsServer(t, answers)
		servers[at+":53"] = [2]string{udp, tcp}
	}
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	r := &resolverRelay{conf: conf, own: []netip.Addr{netip.MustParseAddr("192.0.2.9")},
		log: slog.New(slog.DiscardHandler), patience: resolverPatience,
		dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			to, known := servers[address]
			if !known {
				t.Errorf("the relay asks %s", address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, to[map[string]int{"udp": 0, "tcp": 1}[network]])
		}}
	at := netip.MustParseAddrPort(freePort(t))
	ctx, stop := context.WithCancel(t.Context())
	wait, err := r.serve(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); wait() }()
	for _, c := range []struct{ conf, want string }{
		{"", "server misbehaving"},
		{"nameserver 192.0.2.1\n", "198.51.100.1"},
		{"# a comment\nsearch example\nnameserver bad\nnameserver 192.0.2.2 # second\n", "198.51.100.2"},
		{"nameserver 192.0.2.3\nnameserver 192.0.2.1\n", "198.51.100.1"},
		{"nameserver 192.0.2.9\n", "server misbehaving"},
	} {
		if err := os.WriteFile(conf, []byte(c.conf), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, network := range []string{"udp", "tcp"} {
			if network == "tcp" && (strings.Contains(c.conf, "192.0.2.3") || strings.Contains(c.want, "misbehaving")) {
				continue // a stream is led to one server
			}
			resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, at.String())
			}}
			asking, cancel := context.WithTimeout(ctx, 20*time.Second)
			found, err := resolver.LookupHost(asking, "name.example.")
			cancel()
			got := strings.Join(found, " ")
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("with %q over %s: %s, not %s", c.conf, network, got, c.want)
			}
		}
	}
}

// TestRelayedFlood: addresses that ask for names whose server is silent, more often than there are places, take no
// answer from another address. Before they had their parts, one of them held all places.
func TestRelayedFlood(t *testing.T) {
	t.Parallel()
	for name, flooders := range map[string]int{"one address": 1,
		"more than there are parts": relayedMost/relayedPart + 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				t.Fatal(err)
			}
			if err := upstream.SetReadBuffer(4 << 20); err != nil { // a lost question would hold its place for the hour
				t.Fatal(err)
			}
			held := make(chan struct{}, 10_000) // one for each question of the flood that has a place
			go func() {
				for buffer := make([]byte, 4096); ; {
					n, from, err := upstream.ReadFromUDPAddrPort(buffer)
					if err != nil {
						return
					}
					if strings.Contains(string(buffer[:n]), "silent") {
						held <- struct{}{}
					} else if _, err := upstream.WriteToUDPAddrPort(failure(buffer[:n]), from); err != nil {
						t.Error(err)
					}
				}
			}()
			conf := filepath.Join(t.TempDir(), "resolv.conf")
			if err := os.WriteFile(conf, []byte("nameserver 192.0.2.1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			r := &resolverRelay{conf: conf, log: slog.New(slog.DiscardHandler), patience: time.Hour,
				dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, network, upstream.LocalAddr().String())
				}}
			at := netip.MustParseAddrPort(freePort(t))
			ctx, stop := context.WithCancel(t.Context())
			wait, err := r.serve(ctx, at)
			if err != nil {
				t.Fatal(err)
			}
			var flood sync.WaitGroup
			t.Cleanup(func() { stop(); flood.Wait(); wait(); upstream.Close() })
			for i := range flooders {
				conn := dialFrom(t, netip.AddrFrom4([4]byte{127, 0, 1, byte(i + 1)}), at)
				question := questionFor(t, "silent.example.")
				flood.Go(func() {
					again := time.NewTicker(time.Millisecond)
					defer again.Stop()
					for ctx.Err() == nil {
						for range 50 / flooders { // no more than the relay can read
							_, _ = conn.Write(question) // the relay may be gone
						}
						<-again.C
					}
				})
			}
			for range min(flooders*relayedPart, relayedMost) {
				<-held
			}
			conn := dialFrom(t, netip.MustParseAddr("127.0.2.1"), at)
			question := questionFor(t, "name.example.")
			// The kernel drops what the relay cannot read in time, from everybody alike: a client asks again.
			answer := make([]byte, 4096)
			for range 50 {
				if _, err := conn.Write(question); err != nil {
					t.Fatal(err)
				}
				if err := conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
					t.Fatal(err)
				}
				if _, err = conn.Read(answer); err == nil {
					return
				}
			}
			t.Errorf("no answer: %v", err)
		})
	}
}

// dialFrom returns a socket of an address of loopback.
func dialFrom(t *testing.T, from netip.Addr, to netip.AddrPort) *net.UDPConn {
	t.Helper()
	conn, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func questionFor(t *testing.T, name string) []byte {
	t.Helper()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{
			{Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	out, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// freePort is an address of loopback at which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestFailure(t *testing.T) {
	t.Parallel()
	asked := questionFor(t, "a.example.")
	var m dnsmessage.Message
	if err := m.Unpack(failure(asked)); err != nil || m.ID != 7 || !m.Response ||
		m.RCode != dnsmessage.RCodeServerFailure || len(m.Questions) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	for _, bad := range [][]byte{nil, []byte("x"), failure(asked), asked[:15]} {
		if got := failure(bad); got != nil {
			t.Errorf("%q is answered with %q", bad, got)
		}
	}
}
