package apiserver

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
)

// unauthenticatedListener bounds the open connections on which no request has been authenticated yet, and what has been
// received on all of them. Everybody who reaches the port can open one, so beyond the bound the oldest is closed, or
// the one on which most was received: net/http keeps a header of many short lines in forty times its size. A client
// with credentials shows them in its first request, within milliseconds, and from then on its connection does not
// count.
type unauthenticatedListener struct {
	net.Listener
	most, mostBytes int

	mu    sync.Mutex
	open  *list.List // of *unauthenticatedConn, the oldest first
	bytes int        // that have been received on those
}

// limitUnauthenticated returns a listener that counts its connections, and the bytes on them, until they are
// authenticated.
func limitUnauthenticated(l net.Listener, most, mostBytes int) net.Listener {
	return &unauthenticatedListener{Listener: l, most: most, mostBytes: mostBytes, open: list.New()}
}

// Accept implements net.Listener.
func (l *unauthenticatedListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &unauthenticatedConn{Conn: accepted, listener: l}
	l.mu.Lock()
	c.counted = l.open.PushBack(c)
	var oldest *unauthenticatedConn
	// The oldest goes, and not the newest: an attacker that keeps connections open then loses them, and new clients get
	// in.
	if l.open.Len() > l.most {
		oldest = l.open.Front().Value.(*unauthenticatedConn)
		l.forget(oldest)
	}
	l.mu.Unlock()
	if oldest != nil {
		// Outside the lock: closing may block, and oldest.Close would take the lock again.
		_ = oldest.Conn.Close() // the goroutine that serves it notices
	}
	return c, nil
}

// forget stops counting a connection, if it is counted. The caller holds mu.
func (l *unauthenticatedListener) forget(c *unauthenticatedConn) {
	if c.counted == nil {
		return
	}
	l.open.Remove(c.counted)
	l.bytes -= c.bytes
	c.counted = nil
	c.free.Store(true)
}

// received counts n more bytes on a connection, and returns the one that must be closed for that, or nil.
func (l *unauthenticatedListener) received(c *unauthenticatedConn, n int) *unauthenticatedConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.counted == nil {
		return nil
	}
	c.bytes += n
	if l.bytes += n; l.bytes <= l.mostBytes {
		return nil
	}
	largest := c
	for e := l.open.Front(); e != nil; e = e.Next() {
		if other := e.Value.(*unauthenticatedConn); other.bytes > largest.bytes {
			largest = other
		}
	}
	l.forget(largest)
	return largest
}

// unauthenticatedConn is a connection of an unauthenticatedListener. counted is its element in listener.open, nil once
// it is not counted, and bytes are those received until then; listener.mu guards both. free says without the lock that
// it is not counted.
type unauthenticatedConn struct {
	net.Conn
	listener *unauthenticatedListener
	counted  *list.Element
	bytes    int
	free     atomic.Bool
}

// Read implements net.Conn.
func (c *unauthenticatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.free.Load() {
		if largest := c.listener.received(c, n); largest != nil {
			_ = largest.Conn.Close() // the goroutine that serves it notices
		}
	}
	return n, err
}

// release stops counting the connection. It may be called more than once.
func (c *unauthenticatedConn) release() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.listener.forget(c)
}

// Close implements net.Conn.
func (c *unauthenticatedConn) Close() error {
	c.release()
	return c.Conn.Close()
}

type unauthenticatedKey struct{}

// withConnection is the http.Server's ConnContext: it lets authenticated find the connection of a request. The
// connection below TLS is stored, so it works for HTTP/1 and HTTP/2 alike.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		if u, ok := t.NetConn().(*unauthenticatedConn); ok {
			return context.WithValue(ctx, unauthenticatedKey{}, u)
		}
	}
	return ctx
}

// authenticated notes that a request on the connection of ctx has been authenticated.
func authenticated(ctx context.Context) {
	if c, ok := ctx.Value(unauthenticatedKey{}).(*unauthenticatedConn); ok {
		c.release()
	}
}
