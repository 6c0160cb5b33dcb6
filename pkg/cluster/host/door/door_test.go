package door

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"
)

// opened returns the path of a door that is kept until the test ends or close is called.
func opened(t *testing.T) (path string, close func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), Name)
	ctx, cancel := context.WithCancel(t.Context())
	d, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx) }()
	close = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		done <- nil
	}
	t.Cleanup(close)
	return path, close
}

// TestListen: a socket that came through the door accepts connections, and what the kernel refuses is refused with its
// error.
func TestListen(t *testing.T) {
	t.Parallel()
	path, _ := opened(t)
	f, err := ask(path, request{"tcp4", "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.FileListener(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			io.WriteString(conn, "hello")
			conn.Close()
		}
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if text, err := io.ReadAll(conn); err != nil || string(text) != "hello" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := ask(path, request{"tcp4", l.Addr().String()}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a taken port: %v", err)
	}
	if _, err := ask(path, request{"unix", "/tmp/x"}); err == nil {
		t.Error("it opened something that is no port")
	}
}

// TestListenUDP: the same for datagrams.
func TestListenUDP(t *testing.T) {
	t.Parallel()
	path, _ := opened(t)
	f, err := ask(path, request{"udp4", "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.FilePacketConn(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	conn, err := net.Dial("udp", socket.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 16)
	if n, _, err := socket.ReadFrom(text); err != nil || string(text[:n]) != "hello" {
		t.Errorf("%q, %v", text[:n], err)
	}
}

// TestUntilClosed: a cluster learns that nobody keeps its door any more.
func TestUntilClosed(t *testing.T) {
	t.Parallel()
	path, close := opened(t)
	ctx, err := UntilClosed(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatal(context.Cause(ctx))
	}
	close()
	<-ctx.Done()
	if _, err := UntilClosed(t.Context(), path); err == nil {
		t.Error("a door that is closed answers")
	}
}
