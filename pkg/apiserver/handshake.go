package apiserver

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// handshakes is a TLS listener whose connections have shaken hands before they are accepted, each in a goroutine that
// ends with that. A handshake takes a stack of 16 KB or more, and once it has grown, what serves an HTTP/2 connection
// would not let it shrink again: the connection would keep it until it is closed. One whose handshake failed is
// accepted, too: net/http then gets the same error from it, and answers what is right.
type handshakes struct {
	net.Listener
	config  *tls.Config
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

// accept takes connections. An error goes to the caller of Accept, who knows when to try again: nothing is accepted
// before that.
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

func (h *handshakes) shake(c *tls.Conn) {
	ctx, cancel := context.WithTimeout(h.ctx, h.timeout)
	defer cancel()
	_ = c.HandshakeContext(ctx) // the connection keeps the error for who serves it
	if !h.give(accepted{conn: c}) {
		_ = c.NetConn().Close() // nobody will serve it
	}
}

// give hands a to Accept; false: there will be none any more.
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
