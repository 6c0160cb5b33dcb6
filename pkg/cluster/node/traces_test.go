package node

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// TestTracesDoor: what comes in at the port goes to the socket and back; while nobody is there, connections end; and
// the door shuts with its context, with all connections.
func TestTracesDoor(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "api.sock")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	d := &tracesDoor{listener: l, socket: socket, log: slog.New(slog.DiscardHandler)}
	go func() { defer close(done); d.serve(ctx) }()
	dial := func() net.Conn {
		conn, err := net.DialTimeout("tcp", l.Addr().String(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	if _, err := dial().Read(make([]byte, 1)); err == nil {
		t.Error("somebody answers without the process")
	}
	process, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer process.Close()
	go func() {
		for {
			conn, err := process.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadString('\n')
			_, _ = conn.Write([]byte("got " + line))
		}
	}()
	conn := dial()
	if _, err := conn.Write([]byte("x\n")); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || line != "got x\n" {
		t.Errorf("%q, %v", line, err)
	}
	cancel()
	<-done
	if _, err := in.ReadByte(); err == nil {
		t.Error("the connection outlives the door")
	}
}
