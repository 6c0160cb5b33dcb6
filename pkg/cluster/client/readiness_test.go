package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestReadiness: the API server is asked without credentials, and with those of this machine where nobody else is let
// in. A new API server's 403 counts as not ready: the administrator's identity would hide it.
func TestReadiness(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	if err := pki.Make(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	var asked []string
	nobody := http.StatusUnauthorized
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			asked = append(asked, r.TLS.PeerCertificates[0].Subject.CommonName)
			return
		}
		asked = append(asked, "nobody")
		w.WriteHeader(nobody)
	}))
	ca, err := os.ReadFile(c.Layout().PKI("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca)
	certificate, err := tls.LoadX509KeyPair(c.Layout().PKI("apiserver.crt"), c.Layout().PKI("apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientCAs: clients,
		ClientAuth: tls.VerifyClientCertIfGiven}
	server.StartTLS()
	defer server.Close()
	c.Ports.API = server.Listener.Addr().(*net.TCPAddr).Port
	if err := kubeconfig.WriteAll(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := WaitReady(ctx, c); err != nil {
		t.Error(err)
	}
	if len(asked) != 2 || asked[0] != "nobody" || asked[1] == "nobody" {
		t.Errorf("asked by %q", asked)
	}
	nobody, asked = http.StatusForbidden, nil
	if err := AskReady(t.Context(), c); err == nil || !strings.Contains(err.Error(), "/readyz says 403 Forbidden") {
		t.Errorf("403: %v", err)
	}
	if !slices.Equal(asked, []string{"nobody"}) {
		t.Errorf("403: asked by %q", asked)
	}
}
