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
	limited := limitUnauthenticated(l, 2, 1<<20)
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

// Beyond the bound of bytes, the connection on which most was received is closed; an authenticated one may receive
// more.
func TestUnauthenticatedBytes(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	limited := limitUnauthenticated(l, 10, 1000)
	var servers []net.Conn
	receive := func(i, n int) error {
		_, err := io.ReadFull(servers[i], make([]byte, n))
		return err
	}
	for i, n := range []int{5000, 10, 900, 80} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, err := limited.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		servers = append(servers, s)
		if _, err := c.Write(make([]byte, n+100)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			authenticated(withConnection(t.Context(), tls.Server(s, &tls.Config{})))
		}
		if err := receive(i, n); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	if err := receive(3, 50); err != nil { // 1,040 in all
		t.Errorf("the connection with 130 bytes: %v", err)
	}
	if err := receive(2, 1); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection with 900 bytes: %v, want it closed", err)
	}
	for _, i := range []int{0, 1, 3} {
		if err := receive(i, 10); err != nil {
			t.Errorf("connection %d: %v", i, err)
		}
		servers[i].Close()
	}
	if of := limited.(*unauthenticatedListener); of.open.Len() != 0 || of.bytes != 0 {
		t.Errorf("%d connections and %d bytes are still counted", of.open.Len(), of.bytes)
	}
}
