package daemon

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// pipes is a network in memory; mute cuts all its connections off without closing them.
type pipes struct {
	conns chan net.Conn
	stop  chan struct{}
	once  sync.Once
	muted atomic.Pointer[chan struct{}]
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	a, b := net.Pipe()
	p.conns <- b
	return &mutable{Conn: a, muted: *p.muted.Load(), closed: make(chan struct{})}, nil
}

func (p *pipes) mute() {
	fresh := make(chan struct{})
	close(*p.muted.Swap(&fresh))
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.stop:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.stop) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// mutable is a connection whose other end is gone once muted: what is written is lost, and nothing comes.
type mutable struct {
	net.Conn
	muted  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (c *mutable) Write(b []byte) (int, error) {
	select {
	case <-c.muted:
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

func (c *mutable) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.muted:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *mutable) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// connected runs test with a client of a server over HTTP/2, in a time and on a network of its own.
func connected(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, c *http.Client, p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{conns: make(chan net.Conn), stop: make(chan struct{})}
		first := make(chan struct{})
		p.muted.Store(&first)
		srv := httptest.NewUnstartedServer(handler)
		srv.Listener.Close()
		srv.Listener, srv.EnableHTTP2, srv.Config.ErrorLog = p, true, log.New(io.Discard, "", 0)
		srv.StartTLS()
		defer srv.Close()
		config, err := Connect(&rest.Config{Host: "https://api", Dial: p.dial,
			TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
		if err != nil {
			t.Fatal(err)
		}
		c, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseIdleConnections()
		test(t, c, p)
	})
}

// get asks for path and returns how long it took and what went wrong.
func get(t *testing.T, c *http.Client, path string) (time.Duration, error) {
	t.Helper()
	begun := time.Now()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		return time.Since(begun), err
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 {
		t.Fatalf("the protocol is %s", resp.Proto)
	}
	_, err = io.ReadAll(resp.Body)
	return time.Since(begun), err
}

// TestSilentConnection: a connection that lost its other end is given up in less than half of a lease, and the next
// request goes over a new one. Leases: https://kubernetes.io/docs/concepts/architecture/leases/#node-heart-beats.
func TestSilentConnection(t *testing.T) {
	t.Parallel()
	connected(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}, func(t *testing.T, c *http.Client, p *pipes) {
		if _, err := get(t, c, "/"); err != nil {
			t.Fatal(err)
		}
		watched := make(chan time.Duration)
		go func() {
			d, _ := get(t, c, "/pods?watch=true")
			watched <- d
		}()
		synctest.Wait()
		p.mute()
		if d, err := get(t, c, "/lease"); err == nil || d > 15*time.Second {
			t.Errorf("on the dead connection: %v after %v", err, d)
		}
		if d := <-watched; d > 15*time.Second {
			t.Errorf("the watch ended after %v", d)
		}
		if d, err := get(t, c, "/lease"); err != nil || d > time.Second {
			t.Errorf("the next request: %v after %v", err, d)
		}
	})
}

// TestRequestsEnd: a server whose connection lives, but which does not answer, holds no request for ever; a watch may
// last.
func TestRequestsEnd(t *testing.T) {
	t.Parallel()
	connected(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/hangs" {
			w.(http.Flusher).Flush()
		}
		select {
		case <-r.Context().Done():
		case <-time.After(time.Hour):
		}
	}, func(t *testing.T, c *http.Client, _ *pipes) {
		for _, path := range []string{"/hangs", "/trickles"} {
			if d, err := get(t, c, path); !errors.Is(err, context.DeadlineExceeded) || d != callTimeout {
				t.Errorf("%s: %v after %v", path, err, d)
			}
		}
		if d, err := get(t, c, "/pods?watch=true"); err != nil || d != time.Hour {
			t.Errorf("a watch: %v after %v", err, d)
		}
	})
}
