package connlimit

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
)

// UntrustedConfig says how much is held for clients that have shown no right to it.
type UntrustedConfig struct {
	// Most is how many connections there may be.
	Most int
	// Bytes is how much may have been received on all of them for requests without an answer. net/http keeps a header
	// of many short lines in forty times its size.
	Bytes int
}

// Untrusted bounds the connections of an HTTP server that everybody who reaches its port can open: those on which no
// request was trusted yet, and what was received on them. Beyond the bound it closes one of the address with the most,
// so a flood from a few addresses ends its own connections alone. It is the oldest and not the newest, so new clients
// always get in, and an attacker loses what it keeps open.
//
// A client with a right shows it in its first request, within milliseconds. From then on its connection does not count,
// and nothing ends it for others: it may be a stream that is silent for hours.
//
// The http.Server needs ConnContext and ConnState of this package. Servers may share an Untrusted. Make it with
// NewUntrusted.
type Untrusted struct {
	cfg UntrustedConfig

	mu      sync.Mutex
	open    *list.List             // of *untrustedConn, the oldest first
	sources map[netip.Addr]*source // of those in open
	bytes   int                    // received on those
}

// source is what one address has in an Untrusted, whose mu guards it.
type source struct{ conns, bytes int }

// NewUntrusted returns an Untrusted without connections.
func NewUntrusted(cfg UntrustedConfig) *Untrusted {
	return &Untrusted{cfg: cfg, open: list.New(), sources: map[netip.Addr]*source{}}
}

// Listener returns a listener whose connections count until they are trusted. TLS goes on top of it.
func (u *Untrusted) Listener(l net.Listener) net.Listener { return &untrustedListener{l, u} }

type untrustedListener struct {
	net.Listener
	limit *Untrusted
}

// Accept implements net.Listener.
func (l *untrustedListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c, chosen := l.limit.enter(accepted)
	if chosen != nil {
		// Outside the lock: closing may block, and chosen.Close would take the lock again.
		_ = chosen.Conn.Close() // the goroutine that serves it notices
	}
	return c, nil
}

// enter counts a connection. It returns the one that must be closed for it, or nil.
func (u *Untrusted) enter(accepted net.Conn) (c, chosen *untrustedConn) {
	address := addressOf(accepted)
	u.mu.Lock()
	defer u.mu.Unlock()
	from := u.sources[address]
	if from == nil {
		from = &source{}
		u.sources[address] = from
	}
	from.conns++
	c = &untrustedConn{Conn: accepted, limit: u, address: address, from: from}
	c.counted = u.open.PushBack(c)
	if u.open.Len() <= u.cfg.Most {
		return c, nil
	}
	chosen = u.oldest()
	u.forget(chosen)
	return c, chosen
}

// oldest is the oldest connection of the addresses with the most. The caller holds mu.
func (u *Untrusted) oldest() *untrustedConn {
	chosen := u.open.Front().Value.(*untrustedConn)
	for e := u.open.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*untrustedConn); c.from.conns > chosen.from.conns {
			chosen = c
		}
	}
	return chosen
}

// forget stops counting a connection, if it is counted. The caller holds mu.
func (u *Untrusted) forget(c *untrustedConn) {
	if c.counted == nil {
		return
	}
	u.open.Remove(c.counted)
	u.answered(c)
	if c.from.conns--; c.from.conns == 0 {
		delete(u.sources, c.address)
	}
	c.counted = nil
	c.free.Store(true)
}

// answered forgets what was received on a connection. The caller holds mu.
func (u *Untrusted) answered(c *untrustedConn) {
	u.bytes -= c.bytes
	c.from.bytes -= c.bytes
	c.bytes = 0
}

// received counts n more bytes on a connection, and returns the one that must be closed for that, or nil: of the
// address that has sent most, the one on which most was received.
func (u *Untrusted) received(c *untrustedConn, n int) *untrustedConn {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c.counted == nil {
		return nil
	}
	c.bytes += n
	c.from.bytes += n
	if u.bytes += n; u.bytes <= u.cfg.Bytes {
		return nil
	}
	largest := u.open.Front().Value.(*untrustedConn)
	for e := u.open.Front(); e != nil; e = e.Next() {
		other := e.Value.(*untrustedConn)
		if other.from.bytes > largest.from.bytes ||
			other.from.bytes == largest.from.bytes && other.bytes > largest.bytes {
			largest = other
		}
	}
	u.forget(largest)
	return largest
}

// untrustedConn is a connection of an Untrusted. counted is its element in limit.open, nil once it is not counted.
// bytes are those received for requests without an answer. limit.mu guards both. free says without the lock that it is
// not counted.
type untrustedConn struct {
	net.Conn
	limit   *Untrusted
	address netip.Addr
	from    *source
	counted *list.Element
	bytes   int
	free    atomic.Bool
}

// Read implements net.Conn.
func (c *untrustedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.free.Load() {
		if largest := c.limit.received(c, n); largest != nil {
			_ = largest.Conn.Close() // the goroutine that serves it notices
		}
	}
	return n, err
}

// release stops counting the connection. It may be called more than once.
func (c *untrustedConn) release() {
	c.limit.mu.Lock()
	defer c.limit.mu.Unlock()
	c.limit.forget(c)
}

// Close implements net.Conn.
func (c *untrustedConn) Close() error {
	c.release()
	return c.Conn.Close()
}

// untrustedOf finds the connection of an Untrusted, which may be below TLS: so it works for HTTP/1 and HTTP/2 alike.
func untrustedOf(c net.Conn) (*untrustedConn, bool) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	u, ok := c.(*untrustedConn)
	return u, ok
}

type untrustedKey struct{}

// ConnContext is for http.Server: it lets Trust find the connection of a request.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if u, ok := untrustedOf(c); ok {
		return context.WithValue(ctx, untrustedKey{}, u)
	}
	return ctx
}

// ConnState is for http.Server. Between two requests of HTTP/1 nothing of the earlier ones is held, so what was
// received for them is forgotten: a client without rights that asks again and again, as a probe does, keeps its
// connection. (Over TLS it may forget a record of the next request, of 16 KiB at most.) An HTTP/2 connection without
// streams may hold the half of a header, so there everything counts. A handler that takes the connection over has let
// the client in.
func ConnState(c net.Conn, state http.ConnState) {
	u, ok := untrustedOf(c)
	if !ok || u.free.Load() {
		return
	}
	switch t, isTLS := c.(*tls.Conn); {
	case state == http.StateHijacked:
		u.release()
	case state != http.StateIdle || isTLS && t.ConnectionState().NegotiatedProtocol == "h2":
	default:
		u.limit.mu.Lock()
		defer u.limit.mu.Unlock()
		u.limit.answered(u)
	}
}

// Trust notes that a request on the connection of ctx may have what it asks for.
func Trust(ctx context.Context) {
	if c, ok := ctx.Value(untrustedKey{}).(*untrustedConn); ok {
		c.release()
	}
}
