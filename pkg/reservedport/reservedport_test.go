package reservedport

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReserve: a program that shares ports listens on a reserved one, and another does not. Nobody connects before.
func TestReserve(t *testing.T) {
	t.Parallel()
	port, hold, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	address := fmt.Sprintf("127.0.0.1:%d", port)
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("somebody answers at a port that is only reserved")
	}
	if l, err := net.Listen("tcp", address); err == nil {
		l.Close()
		t.Error("a program that does not share ports has a reserved one")
	}
	sharing := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		if err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}); err != nil {
			return err
		}
		return failed
	}}
	l, err := sharing.Listen(context.Background(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
