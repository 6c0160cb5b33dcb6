package apiserver

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// strangers are the open connections whose client has not yet shown who it is. Everybody who reaches the port may open
// one, so there are only so many: beyond that the oldest is closed. One who has credentials shows them with the first
// request, within milliseconds, and is a stranger no more.
type strangers struct {
	net.Listener
	most int

	mu   sync.Mutex
	open *list.List // of *stranger, the oldest first
}

// watchStrangers returns a listener whose connections are strangers at first.
func watchStrangers(l net.Listener, most int) net.Listener {
	return &strangers{Listener: l, most: most, open: list.New()}
}

// Accept implements net.Listener.
func (s *strangers) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	guest := &stranger{Conn: c, among: s}
	s.mu.Lock()
	guest.place = s.open.PushBack(guest)
	var oldest *stranger
	if s.open.Len() > s.most {
		oldest = s.open.Remove(s.open.Front()).(*stranger)
		oldest.place = nil
	}
	s.mu.Unlock()
	if oldest != nil {
		_ = oldest.Conn.Close() // the one that serves it notices
	}
	return guest, nil
}

// stranger is one connection. place is nil once it is not counted; among.mu guards it.
type stranger struct {
	net.Conn
	among *strangers
	place *list.Element
}

func (s *stranger) leave() {
	s.among.mu.Lock()
	defer s.among.mu.Unlock()
	if s.place != nil {
		s.among.open.Remove(s.place)
		s.place = nil
	}
}

// Close implements net.Conn.
func (s *stranger) Close() error {
	s.leave()
	return s.Conn.Close()
}

type strangerKey struct{}

// introduction is the http.Server's ConnContext: it lets introduced find the connection of a request.
func introduction(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		if s, ok := t.NetConn().(*stranger); ok {
			return context.WithValue(ctx, strangerKey{}, s)
		}
	}
	return ctx
}

// introduced notes that the client of a request's connection is known.
func introduced(ctx context.Context) {
	if s, ok := ctx.Value(strangerKey{}).(*stranger); ok {
		s.leave()
	}
}
