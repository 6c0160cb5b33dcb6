package apiserver

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// handshakes is a TLS listener whose connections have finished their handshakes before they are accepted. Each
// handshake has a goroutine of its own, which ends with it. A handshake needs a stack of 16 KB or more. On the
// goroutine that serves an HTTP/2 connection that stack would never shrink, and each connection would keep it until it
// closes. A connection whose handshake failed is accepted too: net/http then gets the same error from it and handles it
// as usual.
type handshakes struct {
	net.Listener
	config *tls.Config
	// A client that connects and sends nothing holds a goroutine for as long.
	timeout time.Duration // of one handshake

	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	accepted chan accepted
	// begin starts accepting with the first Accept: until then the http.Server may change config.
	begin sync.Once
	tasks sync.WaitGroup
}

// accepted is what one Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

// shakeHands returns a TLS listener on l. Handshakes end with ctx, too.
func shakeHands(ctx context.Context, l net.Listener, config *tls.Config, timeout time.Duration) net.Listener {
	h := &handshakes{Listener: l, config: config, timeout: timeout, accepted: make(chan accepted)}
	h.ctx, h.cancel = context.WithCancel(ctx)
	return h
}

// Accept implements net.Listener.
func (h *handshakes) Accept() (net.Conn, error) {
	h.begin.Do(func() { h.tasks.Go(h.accept) })
	select {
	case a := <-h.accepted:
		return a.conn, a.err
	case <-h.ctx.Done():
		return nil, net.ErrClosed
	}
}

// accept takes connections until Close. An error goes to the caller of Accept, which decides when to try again
// (net/http backs off). Until then nothing is accepted.
func (h *handshakes) accept() {
	for {
		c, err := h.Listener.Accept()
		if err != nil {
			if !h.give(accepted{err: err}) {
				return
			}
			continue
		}
		h.tasks.Go(func() { h.shake(tls.Server(c, h.config)) })
	}
}

// shake runs on the goroutine of one connection. Without a reader in Accept it waits in give, so no more connections
// pile up here than connlimit.Untrusted allows.
func (h *handshakes) shake(c *tls.Conn) {
	ctx, cancel := context.WithTimeout(h.ctx, h.timeout)
	defer cancel()
	_ = c.HandshakeContext(ctx) // the connection keeps the error for who serves it
	if !h.give(accepted{conn: c}) {
		_ = c.NetConn().Close() // nobody will serve it
	}
}

// give hands a to Accept. It returns false after Close, when nobody accepts any more.
func (h *handshakes) give(a accepted) bool {
	select {
	case h.accepted <- a:
		return true
	case <-h.ctx.Done():
		return false
	}
}

// Close implements net.Listener. Handshakes under way end with it.
func (h *handshakes) Close() error {
	h.cancel()
	err := h.Listener.Close()
	h.tasks.Wait()
	return err
}
