package server

import (
	"bufio"
	"net"
	"net/http"
	"time"
)

// idleWriter gives away the connection of a request as one that is closed when nothing was read or written for a while.
// All that a client and a container say to each other passes through it.
type idleWriter struct {
	http.ResponseWriter
	idle time.Duration
}

// Unwrap is how the standard library finds the writer beneath.
func (w idleWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack implements http.Hijacker.
func (w idleWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return newIdleConn(conn, w.idle), buffered, nil
}

// idleConn is a connection that is closed once it was idle for a while.
type idleConn struct {
	net.Conn
	idle  time.Duration
	timer *time.Timer
}

func newIdleConn(conn net.Conn, idle time.Duration) *idleConn {
	return &idleConn{conn, idle, time.AfterFunc(idle, func() { _ = conn.Close() })}
}

// Read implements net.Conn.
func (c *idleConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.used(err)
}

// Write implements net.Conn.
func (c *idleConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.used(err)
}

// used begins the time again, unless there was an error. A timer that has fired closed the connection.
func (c *idleConn) used(err error) error {
	if err == nil && c.timer.Stop() {
		c.timer.Reset(c.idle)
	}
	return err
}

// Close implements net.Conn.
func (c *idleConn) Close() error {
	c.timer.Stop()
	return c.Conn.Close()
}
