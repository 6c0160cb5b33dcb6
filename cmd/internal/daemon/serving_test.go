package daemon

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestServingTLS: the flags decide what a client may speak.
func TestServingTLS(t *testing.T) {
	t.Parallel()
	own, err := selfSigned("localhost")
	if err != nil {
		t.Fatal(err)
	}
	const suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
	for _, c := range []struct {
		serving Serving
		client  *tls.Config
		ok      bool
	}{
		{Serving{}, &tls.Config{MaxVersion: tls.VersionTLS12}, true},
		{Serving{}, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, false},
		{Serving{MinVersion: "VersionTLS13"}, &tls.Config{MaxVersion: tls.VersionTLS12}, false},
		{Serving{MinVersion: "VersionTLS13"}, &tls.Config{}, true},
		{Serving{CipherSuites: []string{suite}},
			&tls.Config{MaxVersion: tls.VersionTLS12,
				CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}, false},
		{Serving{CipherSuites: []string{suite}},
			&tls.Config{MaxVersion: tls.VersionTLS12,
				CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}}, true},
		{Serving{CipherSuites: []string{"TLS_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"}},
			&tls.Config{MaxVersion: tls.VersionTLS12,
				CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256}}, true},
		{Serving{Curves: []int32{int32(tls.CurveP384)}}, &tls.Config{CurvePreferences: []tls.CurveID{tls.X25519}},
			false},
		{Serving{Curves: []int32{int32(tls.CurveP384)}}, &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP384}},
			true},
		{Serving{NoHTTP2: true}, &tls.Config{NextProtos: []string{"h2"}}, false},
		{Serving{NoHTTP2: true}, &tls.Config{NextProtos: []string{"h2", "http/1.1"}}, true},
	} {
		config, err := c.serving.TLS(func() *tls.Certificate { return &own }, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		a, b := net.Pipe()
		c.client.InsecureSkipVerify = true
		done := make(chan struct{})
		go func() {
			defer close(done)
			// What the client sees is what counts.
			_ = tls.Server(a, config).HandshakeContext(t.Context())
			a.Close()
		}()
		if err := tls.Client(b, c.client).HandshakeContext(t.Context()); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.serving, err)
		}
		b.Close()
		<-done
	}
	for _, bad := range []Serving{{MinVersion: "VersionTLS9"}, {CipherSuites: []string{"x"}}, {MaxStreams: -1},
		{Curves: []int32{0}}, {Curves: []int32{7}}, {Named: NamedCertificates{{cert: "/none", key: "/none"}}}} {
		if err := bad.Validate(); err == nil || !strings.HasPrefix(err.Error(), "--") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestMaxStreams: a connection carries as many requests at once as the flag allows; a client needs another one for
// more.
func TestMaxStreams(t *testing.T) {
	t.Parallel()
	for limit, connections := range map[int]int32{0: 1, 1: 2} {
		var both sync.WaitGroup
		both.Add(2)
		s := &Server{Listener: Listener{Address: "127.0.0.1"}, Serving: Serving{MaxStreams: limit},
			Log: slog.New(slog.DiscardHandler),
			Extra: map[string]http.Handler{
				"/both": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { both.Done(); both.Wait() }),
			}}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.serve(ctx, l) }()
		var dials atomic.Int32
		transport := &http.Transport{
			ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				dials.Add(1)
				return (&net.Dialer{}).DialContext(ctx, network, address)
			},
		}
		get := func(path string) {
			resp, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String() + path)
			if err != nil {
				t.Error(err)
				return
			}
			if resp.Body.Close(); resp.ProtoMajor != 2 {
				t.Errorf("the protocol is %s", resp.Proto)
			}
		}
		get("/healthz") // after it the client knows the limit
		var requests sync.WaitGroup
		for range 2 {
			requests.Go(func() { get("/both") })
		}
		requests.Wait()
		if n := dials.Load(); n != connections {
			t.Errorf("limit %d: %d connections, want %d", limit, n, connections)
		}
		transport.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestSharePort: two may listen at one address if both permit it, and only then.
func TestSharePort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ first, second, ok bool }{{true, true, true}, {true, false, false}, {false, true, false},
		{false, false, false}} {
		one, err := Serving{SharePort: c.first}.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		other, err := Serving{SharePort: c.second}.Listen(one.Addr().String())
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil {
			other.Close()
		}
		one.Close()
	}
}
