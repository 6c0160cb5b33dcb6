package x509

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"bonsai/pkg/authorities"
)

type ca struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCA(t *testing.T) ca {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	return ca{parse(t, tmpl, tmpl, key, key), key}
}

func parse(t *testing.T, tmpl, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c ca) issue(t *testing.T, cn string, usage x509.ExtKeyUsage, life time.Duration,
	groups ...string) *x509.Certificate {
	return parse(t, &x509.Certificate{SerialNumber: big.NewInt(2),
		Subject:   pkix.Name{CommonName: cn, Organization: groups},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life), ExtKeyUsage: []x509.ExtKeyUsage{usage}},
		c.cert, c.key, c.key)
}

func (c ca) write(t *testing.T, path string) {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.cert.Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
}

// TestUID: the UID of the subject is the user's, and a certificate whose UID is not one text is refused.
func TestUID(t *testing.T) {
	t.Parallel()
	good := newCA(t)
	path := filepath.Join(t.TempDir(), "ca.crt")
	good.write(t, path)
	file, err := authorities.NewFile(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		uids []any
		uid  string
		err  string
	}{
		"none":  {},
		"one":   {uids: []any{"u-1"}, uid: "u-1"},
		"two":   {uids: []any{"u-1", "u-2"}, err: "expected 1 UID, but found multiple: [u-1 u-2]"},
		"empty": {uids: []any{""}, err: "UID cannot be an empty string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			subject := pkix.Name{CommonName: "alice"}
			for _, uid := range c.uids {
				subject.ExtraNames = append(subject.ExtraNames, pkix.AttributeTypeAndValue{
					Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: uid})
			}
			r := httptest.NewRequest("GET", "/", nil)
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{parse(t, &x509.Certificate{
				SerialNumber: big.NewInt(2), Subject: subject, NotBefore: time.Now().Add(-time.Hour),
				NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
				good.cert, good.key, good.key)}}
			u, err := New(Config{CA: file}).Authenticate(r)
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("%v, want %s", err, c.err)
				}
				return
			}
			if err != nil || u.UID != c.uid {
				t.Errorf("%+v, %v", u, err)
			}
		})
	}
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	good, other := newCA(t), newCA(t)
	path := filepath.Join(t.TempDir(), "ca.crt")
	good.write(t, path)
	file, err := authorities.NewFile(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	client := x509.ExtKeyUsageClientAuth
	for name, c := range map[string]struct {
		cert    *x509.Certificate
		now     time.Duration
		user    string
		wantErr bool
	}{
		"good":            {good.issue(t, "alice", client, time.Hour, "dev", "ops"), 0, "alice", false},
		"expired":         {good.issue(t, "alice", client, time.Hour), 2 * time.Hour, "", true},
		"another CA":      {other.issue(t, "alice", client, time.Hour), 0, "", true},
		"a server's":      {good.issue(t, "alice", x509.ExtKeyUsageServerAuth, time.Hour), 0, "", true},
		"no common name":  {good.issue(t, "", client, time.Hour), 0, "", false},
		"no certificates": {nil, 0, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := New(Config{CA: file, Now: func() time.Time { return time.Now().Add(c.now) }})
			r := httptest.NewRequest("GET", "/", nil)
			r.TLS = &tls.ConnectionState{}
			if c.cert != nil {
				r.TLS.PeerCertificates = []*x509.Certificate{c.cert}
			}
			for range 2 { // the second time from memory
				u, err := a.Authenticate(r)
				if (err != nil) != c.wantErr || (u != nil) != (c.user != "") {
					t.Fatalf("got %v, %v", u, err)
				}
				if u != nil && (u.Name != c.user || len(u.Groups) != 2 ||
					u.Extra[credentialIDKey][0][:11] != "X509SHA256=") {
					t.Errorf("got %+v", u)
				}
			}
		})
	}
}

// TestExpiration: callers with certificates count by how long these are still valid, with the buckets that a
// kube-apiserver v1.37.2 showed.
func TestExpiration(t *testing.T) {
	t.Parallel()
	good := newCA(t)
	path := filepath.Join(t.TempDir(), "ca.crt")
	good.write(t, path)
	file, err := authorities.NewFile(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	metrics := prometheus.NewRegistry()
	a := New(Config{CA: file, Metrics: metrics})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	cert := good.issue(t, "alice", x509.ExtKeyUsageClientAuth, 20*time.Minute)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	for range 2 { // the second time from memory
		if _, err := a.Authenticate(r); err != nil {
			t.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	recorded, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(w.Body.String()), "\n")
	for i, want := range strings.Split(strings.TrimSpace(string(recorded)), "\n") {
		if i > 0 && (i >= len(got) || !strings.HasPrefix(got[i], want)) { // the first line is help
			t.Errorf("line %d is not %s in\n%s", i, want, w.Body)
		}
	}
	if !strings.Contains(w.Body.String(), `{le="0"} 0`) || !strings.Contains(w.Body.String(), `{le="1800"} 2`) {
		t.Errorf("two requests with 20 minutes left are not in\n%s", w.Body)
	}
}

// What was verified is forgotten when it ends or when the authorities change.
func TestMemoryEnds(t *testing.T) {
	t.Parallel()
	first, second := newCA(t), newCA(t)
	path := filepath.Join(t.TempDir(), "ca.crt")
	first.write(t, path)
	file, err := authorities.NewFile(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	a := New(Config{CA: file, Now: func() time.Time { return now }})
	r := httptest.NewRequest("GET", "/", nil)
	r.TLS = &tls.ConnectionState{
		PeerCertificates: []*x509.Certificate{first.issue(t, "alice", x509.ExtKeyUsageClientAuth, time.Hour)}}
	if u, err := a.Authenticate(r); u == nil || err != nil {
		t.Fatalf("got %v, %v", u, err)
	}
	now = now.Add(2 * time.Hour)
	if u, err := a.Authenticate(r); u != nil || err == nil {
		t.Fatalf("expired: got %v, %v", u, err)
	}
	now = now.Add(-2 * time.Hour)
	if u, _ := a.Authenticate(r); u == nil {
		t.Fatal("good again: got nobody")
	}
	second.write(t, path)
	for end := time.Now().Add(30 * time.Second); ; <-time.After(20 * time.Millisecond) {
		if u, err := a.Authenticate(r); u == nil && err != nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the certificate of the old authority is still good")
		}
	}
}
