package server

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdleConnections: what is said in either direction keeps a connection; silence closes it.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		c := newIdleConn(ours, time.Minute)
		heard := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, theirs)
			heard <- err
		}()
		for range 3 {
			time.Sleep(50 * time.Second)
			if _, err := c.Write([]byte("x")); err != nil {
				t.Fatal("written to in time:", err)
			}
		}
		go func() { _, _ = theirs.Write([]byte("x")) }()
		time.Sleep(50 * time.Second)
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal("read from in time:", err)
		}
		time.Sleep(59 * time.Second)
		select {
		case <-heard:
			t.Fatal("closed too early")
		default:
		}
		time.Sleep(2 * time.Second)
		if err := <-heard; err != nil {
			t.Error("the client hears", err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("an idle connection is open")
		}
	})
}
