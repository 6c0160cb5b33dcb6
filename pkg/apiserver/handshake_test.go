package apiserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// shaking listens on loopback and shakes hands there.
func shaking(t *testing.T, timeout time.Duration) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	defer s.Close()
	h := shakeHands(t.Context(), l, &tls.Config{Certificates: s.TLS.Certificates}, timeout)
	t.Cleanup(func() { h.Close() })
	return h
}

func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestHandshakeBeforeAccept: who serves a connection finds the handshake done, and does not wait for a client that does
// not begin one.
func TestHandshakeBeforeAccept(t *testing.T) {
	t.Parallel()
	l := shaking(t, time.Minute)
	dial(t, l) // and say nothing
	client := tls.Client(dial(t, l), &tls.Config{InsecureSkipVerify: true})
	shaken := make(chan error, 1)
	go func() { shaken <- client.HandshakeContext(t.Context()) }()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if !c.(*tls.Conn).ConnectionState().HandshakeComplete || c.RemoteAddr().String() != client.LocalAddr().String() {
		t.Errorf("accepted %s, complete: %v", c.RemoteAddr(), c.(*tls.Conn).ConnectionState().HandshakeComplete)
	}
	if err := <-shaken; err != nil {
		t.Error(err)
	}
}

// TestHandshakeTimeout: a client that does not go on with its handshake loses the connection.
func TestHandshakeTimeout(t *testing.T) {
	t.Parallel()
	l := shaking(t, time.Millisecond)
	dial(t, l)
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.(*tls.Conn).HandshakeContext(t.Context()); err == nil {
		t.Error("a handshake that nobody began is complete")
	}
}

// TestHandshakesEndWithClose: closing the listener ends Accept, and the handshakes under way with their connections.
func TestHandshakesEndWithClose(t *testing.T) {
	t.Parallel()
	l := shaking(t, time.Minute)
	silent, loud := dial(t, l), tls.Client(dial(t, l), &tls.Config{InsecureSkipVerify: true})
	go func() { _ = loud.HandshakeContext(context.WithoutCancel(t.Context())) }()
	c, err := l.Accept() // so the silent one was accepted before it
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
	if err := silent.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var late net.Error
	if _, err := silent.Read(make([]byte, 1)); err == nil || errors.As(err, &late) && late.Timeout() {
		t.Errorf("the connection whose handshake was under way is open: %v", err)
	}
}

// TestPlainHTTP: who speaks HTTP without TLS is told so, in net/http's words.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	l := shaking(t, time.Minute)
	server := &http.Server{Handler: http.NotFoundHandler()}
	go server.Serve(l)
	defer server.Close()
	c := dial(t, l)
	if _, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var text strings.Builder
	if err := resp.Write(&text); err != nil || resp.StatusCode != http.StatusBadRequest ||
		!strings.Contains(text.String(), "Client sent an HTTP request to an HTTPS server.") {
		t.Errorf("%v: %s", err, text.String())
	}
}
