// Package connlimittest opens many connections to a server, as a client does that wants to lock others out.
package connlimittest

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a server may take to close a connection.
const patience = 20 * time.Second

// Dialer connects to loopback from the address of floods, 127.0.0.2.
func Dialer() *net.Dialer { return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}} }

// Flood connects n times to a server on loopback and says nothing. The connections are closed with the test.
func Flood(t testing.TB, address string, n int) []net.Conn {
	t.Helper()
	var conns []net.Conn
	for range n {
		c, err := Dialer().DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		conns = append(conns, c)
	}
	return conns
}

// WantClosed waits until the server has closed the first n connections, and fails the test if it has closed another.
func WantClosed(t testing.TB, conns []net.Conn, n int) {
	t.Helper()
	open := 0
	for _, c := range conns[:n] {
		if !ended(t, c, patience) {
			open++
		}
		if open > 3 { // the others are, too: patience for each would last
			t.Fatalf("of %d connections, some of the first %d are open", len(conns), n)
		}
	}
	for i, c := range conns[n:] {
		if hungUp(t, c) {
			t.Fatalf("of %d connections, number %d is closed, and not the first %d alone", len(conns), n+i+1, n)
		}
	}
}

// hungUp reports whether the server has closed a connection, without waiting: a deadline may have passed before the
// read begins, which then says nothing.
func hungUp(t testing.TB, c net.Conn) bool {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	fds := []unix.PollFd{{Events: unix.POLLRDHUP}}
	if err := raw.Control(func(fd uintptr) {
		fds[0].Fd = int32(fd)
		_, err = unix.Poll(fds, 0)
		for errors.Is(err, unix.EINTR) { // a signal of Go's own scheduler: nothing starts poll again
			_, err = unix.Poll(fds, 0)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fds[0].Revents != 0
}

// ended reports whether the server has closed a connection on which it says nothing, or does so in time.
func ended(t testing.TB, c net.Conn, within time.Duration) bool {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Read(make([]byte, 1))
	if err == nil {
		t.Fatal("the server says something by itself")
	}
	return !errors.Is(err, os.ErrDeadlineExceeded)
}
