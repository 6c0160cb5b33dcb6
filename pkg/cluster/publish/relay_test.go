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
		log: slog.New(slog.DiscardHandler),
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
	question := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{
			{Name: dnsmessage.MustNewName("a.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	asked, err := question.Pack()
	if err != nil {
		t.Fatal(err)
	}
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
