package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
	"bonsai/pkg/connlimit"
)

// TestPublish: what a client sends through a published port comes to the first node that answers, and the answer back,
// to the end of either; with the cluster the port is gone.
func TestPublish(t *testing.T) {
	t.Parallel()
	node, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	go func() {
		for {
			conn, err := node.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				all, _ := io.ReadAll(conn) // the end of what the client says comes through
				fmt.Fprintf(conn, "got %s", all)
			}()
		}
	}()
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := netip.MustParseAddrPort(free.Addr().String())
	free.Close()
	c := plantest.Config(t)
	p := New(slog.New(slog.DiscardHandler))
	for _, n := range c.Nodes {
		p.nodes = append(p.nodes, c.NodeIP(n))
	}
	plain := p.dial
	p.dial = func(ctx context.Context, network, to string) (net.Conn, error) {
		switch to {
		case "10.77.0.11:30080":
			return nil, errors.New("refused")
		case "10.77.0.12:30080":
			return plain(ctx, network, node.Addr().String())
		}
		return nil, errors.New("no such node: " + to)
	}
	ctx, cancel := context.WithCancel(t.Context())
	mapping := plan.PortMapping{Address: address.Addr(), HostPort: int(address.Port()), NodePort: 30080}
	wait, err := p.Publish(ctx, []plan.PortMapping{mapping})
	if err != nil {
		t.Fatal(err)
	}
	// What listens may be no node port, but the cluster's DNS.
	if _, err := p.Publish(ctx, []plan.PortMapping{mapping}); err == nil ||
		!strings.Contains(err.Error(), address.String()) || strings.Contains(err.Error(), "node port") {
		t.Errorf("published twice: %v", err)
	}
	if err := NewPortKeeper(slog.New(slog.DiscardHandler)).Keep(ctx, []plan.PortMapping{mapping}); err == nil ||
		!strings.Contains(err.Error(), "publish node port 30080: ") {
		t.Errorf("kept while it is published: %v", err)
	}
	for range 3 {
		conn, err := net.Dial("tcp4", address.String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "hello")
		conn.(*net.TCPConn).CloseWrite()
		if answer, err := io.ReadAll(conn); err != nil || string(answer) != "got hello" {
			t.Errorf("%q, %v", answer, err)
		}
		conn.Close()
	}
	open, err := net.Dial("tcp4", address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	cancel()
	wait() // also for what is open
	if _, err := net.Dial("tcp4", address.String()); err == nil {
		t.Error("the port is still there")
	}
}

// TestPublishSilent: connections that say nothing lock nobody out of a published port, however many there are.
func TestPublishSilent(t *testing.T) {
	t.Parallel()
	node, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	go func() {
		for {
			conn, err := node.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				line := make([]byte, 5)
				if _, err := io.ReadFull(conn, line); err == nil {
					_, _ = conn.Write(line)
				}
			}()
		}
	}()
	door := netip.MustParseAddrPort(freePort(t))
	p := New(slog.New(slog.DiscardHandler))
	p.room = connlimit.Config{Most: 8, PerSource: 4, Silent: 20 * time.Millisecond}
	p.LeadTo([]netip.Addr{door.Addr()})
	plain := p.dial
	p.dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return plain(ctx, network, node.Addr().String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	wait, err := p.Publish(ctx, []plan.PortMapping{{Address: door.Addr(), HostPort: int(door.Port()), NodePort: 30080}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); wait() }()
	for range 30 {
		conn, err := net.Dial("tcp4", door.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	err = host.Poll(ctx, 5*time.Millisecond, func() (bool, error) {
		conn, err := net.DialTimeout("tcp4", door.String(), time.Second)
		if err != nil {
			return false, nil
		}
		defer conn.Close()
		answer := make([]byte, 5)
		if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
			return false, err
		}
		if _, err := conn.Write([]byte("hello")); err != nil {
			return false, nil
		}
		_, err = io.ReadFull(conn, answer)
		return err == nil && string(answer) == "hello", nil
	})
	if err != nil {
		t.Errorf("nobody comes in beside 30 silent connections: %v", err)
	}
}
