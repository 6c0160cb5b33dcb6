package apiserver

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// Beyond the bound the oldest connection without an authenticated request is closed; an authenticated one stays.
func TestUnauthenticatedConnections(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	limited := limitUnauthenticated(l, 2)
	var clients, servers []net.Conn
	connect := func() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		s, err := limited.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		clients, servers = append(clients, c), append(servers, s)
	}
	connect()
	authenticated(withConnection(t.Context(), tls.Server(servers[0], &tls.Config{})))
	for range 4 {
		connect()
	}
	for i, open := range []bool{true, false, false, true, true} {
		if !open {
			if _, err := clients[i].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("connection %d: %v, want it closed", i, err)
			}
			continue
		}
		if _, err := servers[i].Write([]byte("x")); err != nil {
			t.Errorf("connection %d: %v, want it open", i, err)
		}
		if err := clients[i].SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := clients[i].Read(make([]byte, 1)); err != nil {
			t.Errorf("connection %d: %v, want it open", i, err)
		}
	}
	for _, s := range servers {
		s.Close()
	}
	if n := limited.(*unauthenticatedListener).open.Len(); n != 0 {
		t.Errorf("%d closed connections are still counted", n)
	}
}
