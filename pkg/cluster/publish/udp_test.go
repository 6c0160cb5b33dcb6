package publish

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestPublishUDP: datagrams of each client come to one node and its answers back to that client; a node that refuses is
// passed over, and a client that is silent is forgotten.
func TestPublishUDP(t *testing.T) {
	t.Parallel()
	node, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	go func() {
		buffer := make([]byte, 100)
		for {
			n, from, err := node.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			node.WriteToUDPAddrPort(fmt.Appendf(nil, "%s to %d", buffer[:n], from.Port()), from)
		}
	}()
	none, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	refusing := none.LocalAddr().String()
	none.Close()
	free, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	address := netip.MustParseAddrPort(free.LocalAddr().String())
	free.Close()

	c := plantest.Config(t)
	p := New(slog.New(slog.DiscardHandler))
	for _, n := range c.Nodes {
		p.nodes = append(p.nodes, c.NodeIP(n))
	}
	p.idle = 200 * time.Millisecond
	var dialer net.Dialer
	p.dial = func(ctx context.Context, network, to string) (net.Conn, error) {
		if to == "10.77.0.11:30053" {
			return dialer.DialContext(ctx, network, refusing)
		}
		return dialer.DialContext(ctx, network, node.LocalAddr().String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	wait, err := p.Publish(ctx,
		[]plan.PortMapping{{Address: address.Addr(), HostPort: int(address.Port()), NodePort: 30053, UDP: true}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(client net.Conn, text string) string {
		buffer := make([]byte, 100)
		for range 100 { // UDP: what a refusing node got is lost
			if _, err := client.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			client.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			if n, err := client.Read(buffer); err == nil {
				return string(buffer[:n])
			}
		}
		t.Fatalf("no answer to %q", text)
		return ""
	}
	var clients [2]net.Conn
	for i := range clients {
		if clients[i], err = net.Dial("udp4", address.String()); err != nil {
			t.Fatal(err)
		}
		defer clients[i].Close()
	}
	first, second := ask(clients[0], "a"), ask(clients[1], "a")
	if first == second || ask(clients[0], "a") != first {
		t.Errorf("clients are confused: %q, %q", first, second)
	}
	deadline := time.Now().Add(10 * time.Second)
	for ask(clients[1], "a") == second { // asks less and less often, until it was forgotten
		if time.Now().After(deadline) {
			t.Fatal("a silent client is not forgotten")
		}
		client := clients[1]
		client.SetReadDeadline(time.Now().Add(2 * p.idle))
		client.Read(make([]byte, 1)) // nothing comes: this waits
	}
	cancel()
	wait()
	if l, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(address)); err != nil {
		t.Error(err)
	} else {
		l.Close()
	}
}
