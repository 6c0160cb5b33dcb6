package requestheader

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/authorities"
	"bonsai/pkg/frontproxy"
)

// selfSigned returns a certificate that is its own authority.
func selfSigned(t *testing.T, cn string) *x509.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: cn},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	proxy, stranger := selfSigned(t, "front-proxy-client"), selfSigned(t, "front-proxy-client")
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	ca, err := authorities.NewFile(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	alice := &request.User{Name: "alice", UID: "7", Groups: []string{"a", "b"},
		Extra: map[string][]string{"example.org/x": {"1"}}}
	for name, c := range map[string]struct {
		cert    *x509.Certificate
		allowed []string
		user    string
		want    *request.User
		wantErr bool
	}{
		"the proxy":           {proxy, []string{"front-proxy-client"}, "alice", alice, false},
		"any name":            {proxy, nil, "alice", alice, false},
		"a name not allowed":  {proxy, []string{"other"}, "alice", nil, true},
		"another authority":   {stranger, nil, "alice", nil, true},
		"no certificate":      {nil, nil, "alice", nil, false},
		"nobody is mentioned": {proxy, nil, "", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := New(Config{CA: ca, AllowedNames: c.allowed,
				Headers: frontproxy.Headers{UsernameHeaders: []string{"X-Remote-User"},
					UIDHeaders:   []string{"X-Remote-Uid"},
					GroupHeaders: []string{"X-Remote-Group"}, ExtraHeaderPrefixes: []string{"X-Remote-Extra-"}}})
			r := httptest.NewRequest("GET", "/", nil)
			r.Header = http.Header{"X-Remote-User": {c.user}, "X-Remote-Uid": {"7"}, "X-Remote-Group": {"a", "b"},
				"X-Remote-Extra-Example.org%2fx": {"1"}, "Accept": {"x"}}
			if c.cert != nil {
				r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c.cert}}
			}
			u, err := a.Authenticate(r)
			if d := cmp.Diff(c.want, u); d != "" || (err != nil) != c.wantErr {
				t.Errorf("got %v %s", err, d)
			}
			if u != nil && len(r.Header) != 1 {
				t.Errorf("headers left: %v", r.Header)
			}
		})
	}
}
