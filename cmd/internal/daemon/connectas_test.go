package daemon

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// TestConnectAs: a connection goes on under the certificate with which it began, until all are closed.
func TestConnectAs(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if certs := r.TLS.PeerCertificates; len(certs) > 0 {
			name = certs[0].Subject.CommonName
		}
		w.Header().Set("Name", name)
	}))
	srv.TLS, srv.EnableHTTP2 = &tls.Config{ClientAuth: tls.RequestClientCert}, true
	srv.StartTLS()
	defer srv.Close()
	var current atomic.Pointer[tls.Certificate]
	config, closeAll, err := ConnectAs(
		&rest.Config{Host: srv.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, current.Load)
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	is := func(want string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(r)
		// it met a connection that was just being closed, and is made again, as components do
		if errors.Is(err, net.ErrClosed) {
			resp, err = c.Do(r)
		}
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("Name"); got != want {
			t.Errorf("known as %s, not %s", got, want)
		}
	}
	become := func(name string) {
		cert, err := selfSigned(name)
		if err != nil {
			t.Fatal(err)
		}
		current.Store(&cert)
	}
	is("nobody")
	become("a")
	is("nobody")
	closeAll()
	is("a")
	become("b")
	closeAll()
	is("b")
}
