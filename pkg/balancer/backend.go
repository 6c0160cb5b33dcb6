package balancer

import (
	"io"
	"net"
	"slices"
	"sync"
)

// backend is one server and the connections that are carried to it.
type backend struct {
	address string

	mu     sync.Mutex
	up     bool
	gone   bool // it takes no connections any more
	failed int  // answers in a row
	conns  map[*carried]struct{}
}

// newBackend returns a backend that is well until it was asked: who comes first need not wait.
func newBackend(address string) *backend {
	return &backend{address: address, up: true, conns: map[*carried]struct{}{}}
}

// turn is what an answer changed.
type turn int

const (
	same turn = iota
	wentDown
	cameUp
)

// checked takes one answer into account. A backend goes down with the last of so many failures, and comes up with the
// first success.
func (b *backend) checked(ready bool) turn {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ready {
		b.failed = 0
		if b.up {
			return same
		}
		b.up = true
		return cameUp
	}
	if b.failed++; b.failed < failures || !b.up {
		return same
	}
	b.up = false
	return wentDown
}

func (b *backend) isUp() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.up
}

// begin notes a connection. It is false for one that is to end at once, as the backend is none any more.
func (b *backend) begin(c *carried) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return false
	}
	b.conns[c] = struct{}{}
	return true
}

func (b *backend) end(c *carried) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, c)
}

// leave ends all connections, and lets none begin.
func (b *backend) leave() {
	b.mu.Lock()
	b.gone = true
	b.mu.Unlock()
	b.cut()
}

// cut ends all connections.
func (b *backend) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		c.cut()
	}
}

// order returns the backends in which a connection is tried: those that are up, the one with the fewest connections
// first, and then the others, as whoever asked them may be wrong.
func order(all []*backend) []*backend {
	type seen struct {
		*backend
		up    bool
		conns int
	}
	now := make([]seen, len(all))
	for i, b := range all {
		b.mu.Lock()
		now[i] = seen{b, b.up, len(b.conns)}
		b.mu.Unlock()
	}
	slices.SortStableFunc(now, func(x, y seen) int {
		if x.up != y.up {
			if x.up {
				return -1
			}
			return 1
		}
		return x.conns - y.conns
	})
	out := make([]*backend, len(now))
	for i, s := range now {
		out[i] = s.backend
	}
	return out
}

// carried is one connection of a client and the one to its server.
type carried struct{ client, server net.Conn }

// copy copies both ways until both have ended, or one has failed. What one side has said to the end, the other hears
// the end of.
func (c *carried) copy() {
	var wg sync.WaitGroup
	one := func(to, from net.Conn) {
		if _, err := io.Copy(to, from); err != nil {
			c.cut()
			return
		}
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // of one that has ended there is nothing to close
		}
	}
	wg.Go(func() { one(c.server, c.client) })
	one(c.client, c.server)
	wg.Wait()
}

// cut ends both connections so that their peers hear it at once, whatever has not been sent.
func (c *carried) cut() {
	for _, conn := range []net.Conn{c.client, c.server} {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a hint
		}
		conn.Close()
	}
}
