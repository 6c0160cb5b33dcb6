package publish

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"bonsai/pkg/cluster/host/door"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/connlimit"
)

const (
	// publishedDial bounds the wait for one node before the next one is tried. A node whose node port leads nowhere
	// does not even refuse.
	publishedDial = time.Second
	// publishedMost bounds the connections, or clients of UDP, of one published port, and publishedPart those from one
	// address of another machine. When all places are taken, one that has been silent for publishedSilent gives way.
	publishedMost   = 1024
	publishedPart   = 256
	publishedSilent = 10 * time.Second
	// publishedAgain is the pause after a connection could not be accepted.
	publishedAgain = 100 * time.Millisecond
	// publishedIdle is how long a client of UDP and its node may both be silent before the flow ends: until then the
	// same node gets the client's datagrams, and answers reach the client.
	publishedIdle = time.Minute
)

// Publisher forwards connections to published ports to nodes, as a user process: the packet filter of the host, and
// whoever rewrites it, has no part in it.
type Publisher struct {
	log  *slog.Logger
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	idle time.Duration // after which a client of UDP is forgotten
	// room bounds the connections of one port.
	room connlimit.Config

	mu    sync.Mutex
	nodes []netip.Addr // the current nodes in the order in which they are tried; a slice is never changed
}

// New returns a publisher that has no nodes yet.
func New(log *slog.Logger) *Publisher {
	dialer := net.Dialer{Timeout: publishedDial}
	return &Publisher{log: log, idle: publishedIdle, dial: dialer.DialContext,
		room: connlimit.Config{Most: publishedMost, PerSource: publishedPart, Silent: publishedSilent}}
}

// LeadTo sets the nodes for new connections, in the order in which they are tried. Connections that are open stay.
func (p *Publisher) LeadTo(nodes []netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes = nodes
}

// Publish listens at all of the mappings, or at none if one of them fails, and returns. It forwards connections until
// ctx ends; wait returns when the last one has ended and all addresses are free again.
//
// A UDP socket and a TCP listener at one port are two mappings. The goroutines of a failed call never start: it closes
// the listeners before anything is served.
func (p *Publisher) Publish(ctx context.Context, mappings []plan.PortMapping) (wait func(), err error) {
	var listeners []io.Closer
	var serve []func()
	var running sync.WaitGroup
	end := func() {
		for _, l := range listeners {
			l.Close()
		}
	}
	for _, m := range mappings {
		l, work, err := p.listen(ctx, m)
		if err != nil {
			end()
			return nil, err
		}
		listeners, serve = append(listeners, l), append(serve, work)
	}
	for _, work := range serve {
		running.Go(work)
	}
	running.Go(func() { // waited for, too: until it has returned, an address may still be taken
		<-ctx.Done()
		end()
	})
	return running.Wait, nil
}

// listen listens at one mapping. It returns the listener, and a function that serves it until it is closed.
func (p *Publisher) listen(ctx context.Context, m plan.PortMapping) (io.Closer, func(), error) {
	if m.UDP {
		socket, err := door.ListenUDP("udp4", net.UDPAddrFromAddrPort(m.Listens()))
		if err != nil {
			return nil, nil, err
		}
		return socket, func() { p.serveUDP(ctx, socket, m.NodePort) }, nil
	}
	network := "tcp4"
	if m.Listens().Addr().Is6() {
		network = "tcp6"
	}
	l, err := door.Listen(network, m.Listens().String())
	if err != nil {
		return nil, nil, err
	}
	return l, func() { p.serve(ctx, l, m.NodePort) }, nil
}

// serve accepts connections until the listener is closed, and returns when they have ended, which they do with ctx. It
// never waits for a free place: clients that open connections and send nothing would keep everybody else out.
func (p *Publisher) serve(ctx context.Context, l net.Listener, nodePort int) {
	var running sync.WaitGroup
	defer running.Wait()
	limit := connlimit.New(p.room)
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files, for one: nothing of this connection
			p.log.Warn("cannot accept a connection to a published port", "port", nodePort, "err", err)
			select {
			case <-time.After(publishedAgain):
			case <-ctx.Done():
				return
			}
			continue
		}
		leave, err := limit.Enter(conn)
		if err != nil {
			p.log.Debug("a connection to a published port is refused", "port", nodePort, "from", conn.RemoteAddr(),
				"err", err)
			conn.Close()
			continue
		}
		running.Go(func() {
			defer leave()
			p.lead(ctx, conn, nodePort)
		})
	}
}

// lead connects conn to the first node that answers, and copies in both directions until either side or ctx ends. The
// end of one direction is passed on as a half-close, which protocols such as HTTP/1.0 rely on.
func (p *Publisher) lead(ctx context.Context, conn net.Conn, nodePort int) {
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

// connect returns a connection to the first node that answers.
func (p *Publisher) connect(ctx context.Context, port int) (net.Conn, error) {
	p.mu.Lock()
	// LeadTo replaces the slice and never changes it, so it can be read without the lock.
	nodes := p.nodes
	p.mu.Unlock()
	var errs []error
	for _, node := range nodes {
		conn, err := p.dial(ctx, "tcp", netip.AddrPortFrom(node, uint16(port)).String())
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
