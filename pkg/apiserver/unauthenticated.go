package apiserver

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// unauthenticatedListener bounds the open connections on which no request has been authenticated yet. Everybody who
// reaches the port can open one, so beyond the bound the oldest is closed. A client with credentials shows them in its
// first request, within milliseconds, and from then on its connection does not count.
type unauthenticatedListener struct {
	net.Listener
	most int

	mu   sync.Mutex
	open *list.List // of *unauthenticatedConn, the oldest first
}

// limitUnauthenticated returns a listener that counts its connections until they are authenticated.
func limitUnauthenticated(l net.Listener, most int) net.Listener {
	return &unauthenticatedListener{Listener: l, most: most, open: list.New()}
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
		oldest = l.open.Remove(l.open.Front()).(*unauthenticatedConn)
		oldest.counted = nil
	}
	l.mu.Unlock()
	if oldest != nil {
		// Outside the lock: closing may block, and oldest.Close would take the lock again.
		_ = oldest.Conn.Close() // the goroutine that serves it notices
	}
	return c, nil
}

// unauthenticatedConn is a connection of an unauthenticatedListener. counted is its element in listener.open, nil once
// it is not counted; listener.mu guards it.
type unauthenticatedConn struct {
	net.Conn
	listener *unauthenticatedListener
	counted  *list.Element
}

// release stops counting the connection. It may be called more than once.
func (c *unauthenticatedConn) release() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.counted != nil {
		c.listener.open.Remove(c.counted)
		c.counted = nil
	}
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
