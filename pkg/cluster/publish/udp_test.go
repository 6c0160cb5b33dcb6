package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
	"bonsai/pkg/connlimit"
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
	p.idle = time.Second // long beside three questions, also on a busy machine
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
	deadline := time.Now().Add(time.Minute)
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

// TestUDPParts: each step is a client that sends, or a duration that passes. Of it come the clients that were refused,
// and at last those that have a flow.
func TestUDPParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, steps, refused, left string }{
		{"room for all", "1:1 2:1 3:1 4:1", "", "1:1 2:1 3:1 4:1"},
		{"an address has a part", "1:1 1:2 1:3 2:1", "1:3", "1:1 1:2 2:1"},
		{"its silent client gives way", "1:1 600ms 1:2 600ms 1:3", "", "1:2 1:3"},
		{"a client that sends again stays", "1:1 1:2 600ms 1:1 600ms 1:3", "", "1:1 1:3"},
		{"others' do not give way to it", "2:1 5s 1:1 1:2 1:3", "1:3", "1:1 1:2 2:1"},
		{"all places taken", "1:1 2:1 3:1 4:1 5s 5:1", "5:1", "1:1 2:1 3:1 4:1"},
		{"then the one that is silent for long gives way", "2:1 1s 1:1 3:1 4:1 9s 5:1", "", "1:1 3:1 4:1 5:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := New(slog.New(slog.DiscardHandler))
				p.room = connlimit.Config{Most: 4, PerSource: 2, Silent: 10 * time.Second}
				p.nodes = []netip.Addr{netip.MustParseAddr("192.0.2.100")}
				p.dial = func(context.Context, string, string) (net.Conn, error) {
					ours, _ := net.Pipe()
					return ours, nil
				}
				f := &flows{p: p, nodes: map[netip.AddrPort]*flow{}, sources: map[netip.Addr]int{},
					silent: questionSilent}
				client := func(name string) netip.AddrPort { return netip.MustParseAddrPort("192.0.2." + name) }
				var refused []string
				for step := range strings.FieldsSeq(c.steps) {
					if pause, err := time.ParseDuration(step); err == nil {
						time.Sleep(pause)
						continue
					}
					switch _, err := f.to(t.Context(), client(step)); {
					case errors.Is(err, errNoRoom), errors.Is(err, errNoPart):
						refused = append(refused, step)
					case err != nil:
						t.Fatal(err)
					}
				}
				if got := strings.Join(refused, " "); got != c.refused {
					t.Errorf("refused %q, not %q", got, c.refused)
				}
				want := strings.Fields(c.left)
				for _, name := range want {
					if f.nodes[client(name)] == nil {
						t.Errorf("%s has no flow", name)
					}
				}
				if len(f.nodes) != len(want) {
					t.Errorf("%d flows, not %d", len(f.nodes), len(want))
				}
				f.closeAll()
				f.running.Wait()
				if len(f.nodes) != 0 || len(f.sources) != 0 {
					t.Errorf("left over: %v, %v", f.nodes, f.sources)
				}
			})
		})
	}
}
