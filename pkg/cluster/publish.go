package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// PortMapping publishes a node port on the host: TCP connections to the address and port lead to that port of a node.
type PortMapping struct {
	Address  netip.Addr // where it listens
	HostPort int
	NodePort int
}

const (
	// publishedDial is how long a node may take to answer before the next one is tried: one whose node port leads nowhere is silent.
	publishedDial = time.Second
	// publishedMost is how many connections to one published port there may be; further ones wait.
	publishedMost = 1024
)

// ParsePortMapping reads [ADDRESS:]HOSTPORT:NODEPORT; the address is 127.0.0.1 if it is left out.
func ParsePortMapping(text string) (PortMapping, error) {
	parts := strings.Split(text, ":")
	m := PortMapping{Address: netip.MustParseAddr(loopback)}
	if len(parts) < 2 || len(parts) > 3 {
		return m, fmt.Errorf("%q is not [ADDRESS:]HOSTPORT:NODEPORT, as 8080:30080", text)
	}
	if len(parts) == 3 {
		address, err := netip.ParseAddr(parts[0])
		if err != nil {
			return m, fmt.Errorf("%q: %w", text, err)
		}
		m.Address, parts = address, parts[1:]
	}
	for i, to := range []*int{&m.HostPort, &m.NodePort} {
		port, err := strconv.Atoi(parts[i])
		if err != nil {
			return m, fmt.Errorf("%q: %q is no port", text, parts[i])
		}
		*to = port
	}
	return m, m.check()
}

// check returns what is wrong with a mapping by itself.
func (m PortMapping) check() error {
	if !m.Address.Is4() {
		return fmt.Errorf("the address must be an IPv4 address, not %q", m.Address)
	}
	for _, port := range []int{m.HostPort, m.NodePort} {
		if port < 1 || port > 65535 {
			return fmt.Errorf("a port must be between 1 and 65535, not %d", port)
		}
	}
	return nil
}

func (m PortMapping) listens() netip.AddrPort {
	return netip.AddrPortFrom(m.Address, uint16(m.HostPort))
}

// overlap tells whether who listens at a leaves no room for who would at b.
func overlap(a, b netip.AddrPort) bool {
	return a.Port() == b.Port() && (a.Addr() == b.Addr() || a.Addr().IsUnspecified() || b.Addr().IsUnspecified())
}

// publisher leads connections to published ports to the nodes.
type publisher struct {
	log  *slog.Logger
	dial func(ctx context.Context, address string) (net.Conn, error)

	mu    sync.Mutex
	nodes []netip.Addr // of the nodes that there are now, each asked in turn
}

func newPublisher(log *slog.Logger) *publisher {
	dialer := net.Dialer{Timeout: publishedDial}
	return &publisher{log: log, dial: func(ctx context.Context, address string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", address)
	}}
}

// follow takes the nodes of c from now on.
func (p *publisher) follow(c Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes = nil
	for _, n := range c.Nodes {
		p.nodes = append(p.nodes, c.NodeIP(n))
	}
}

// publish listens at all of the mappings and returns; what they get is led on until ctx ends, and then wait returns.
func (p *publisher) publish(ctx context.Context, mappings []PortMapping) (wait func(), err error) {
	var listeners []net.Listener
	var running sync.WaitGroup
	end := func() {
		for _, l := range listeners {
			l.Close()
		}
	}
	for _, m := range mappings {
		l, err := net.Listen("tcp4", m.listens().String())
		if err != nil {
			end()
			return nil, fmt.Errorf("publish node port %d: %w", m.NodePort, err)
		}
		listeners = append(listeners, l)
	}
	for i, m := range mappings {
		running.Go(func() { p.serve(ctx, listeners[i], m.NodePort) })
	}
	stop := context.AfterFunc(ctx, end)
	return func() { running.Wait(); stop() }, nil
}

// serve accepts connections until the listener is closed, and returns when they have ended, which they do with ctx.
func (p *publisher) serve(ctx context.Context, l net.Listener, nodePort int) {
	var running sync.WaitGroup
	defer running.Wait()
	places := make(chan struct{}, publishedMost)
	for {
		places <- struct{}{}
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files, for one: nothing of this connection
			<-places
			p.log.Warn("cannot accept a connection to a published port", "port", nodePort, "err", err)
			continue
		}
		running.Go(func() {
			defer func() { <-places }()
			p.lead(ctx, conn, nodePort)
		})
	}
}

// lead connects conn to the first node that answers, and copies both ways until either side has ended or ctx does.
func (p *publisher) lead(ctx context.Context, conn net.Conn, nodePort int) {
	defer conn.Close()
	node, err := p.connect(ctx, nodePort)
	if err != nil {
		p.log.Info("no node answers for a published port", "port", nodePort, "err", err)
		return
	}
	defer node.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close(); node.Close() })
	defer stop()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{conn, node}, {node, conn}} {
		both.Go(func() {
			if _, err := io.Copy(way[0], way[1]); err != nil {
				conn.Close() // reset on one side: nothing more is wanted on the other
				node.Close()
				return
			}
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				half.CloseWrite() // it may have ended meanwhile
			}
		})
	}
	both.Wait()
}

func (p *publisher) connect(ctx context.Context, port int) (net.Conn, error) {
	p.mu.Lock()
	nodes := p.nodes
	p.mu.Unlock()
	var errs []error
	for _, node := range nodes {
		conn, err := p.dial(ctx, netip.AddrPortFrom(node, uint16(port)).String())
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
