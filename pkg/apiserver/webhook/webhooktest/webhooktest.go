// Package webhooktest has webhooks for tests: HTTPS servers on loopback with a certificate for a Service's name.
package webhooktest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// Server is a webhook.
type Server struct {
	*httptest.Server
	// CABundle signed the server's certificate.
	CABundle []byte
	open     atomic.Int32
}

// NewServer starts a webhook whose certificate is for 127.0.0.1, localhost and names. It ends with the test.
func NewServer(t testing.TB, h http.Handler, names ...string) *Server {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhook"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		DNSNames: append([]string{"localhost"}, names...), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Server: httptest.NewUnstartedServer(h),
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that tests mean to fail
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.open.Add(1)
		case http.StateClosed:
			s.open.Add(-1)
		}
	}
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// Open is how many connections to the server are open.
func (s *Server) Open() int { return int(s.open.Load()) }

// Addr is the server's host:port.
func (s *Server) Addr() string { return s.Listener.Addr().String() }

// Resolve is webhook.Resolver: every Service is at these addresses.
type Resolve []string

// Resolve implements webhook.Resolver.
func (r Resolve) Resolve(context.Context, string, string, int32) ([]string, error) { return r, nil }
