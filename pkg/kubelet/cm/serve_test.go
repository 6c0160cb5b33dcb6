package cm

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// TestConnectionsAreBounded: a client that opens ever more connections gets a bounded number, and who closes one makes
// room.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "serve") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, path, func(*grpc.Server) {}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	dial := func() net.Conn {
		t.Helper()
		for {
			conn, err := net.Dial("unix", path)
			if err == nil {
				t.Cleanup(func() { conn.Close() })
				return conn
			}
			if t.Context().Err() != nil || len(done) > 0 {
				t.Fatal(err)
			}
		}
	}
	// served reports whether the server speaks first, as HTTP/2 servers do, rather than to close.
	served := func(conn net.Conn) bool {
		t.Helper()
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		_, err := conn.Read(make([]byte, 1))
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		return err == nil
	}
	first := dial()
	for i := range maxConns {
		conn := first
		if i > 0 {
			conn = dial()
		}
		if !served(conn) {
			t.Fatalf("connection %d is closed", i)
		}
	}
	if served(dial()) {
		t.Errorf("there are more than %d connections", maxConns)
	}
	first.Close()
	for !served(dial()) { // the server has to notice
	}
}
