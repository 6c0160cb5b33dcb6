package delegated

import (
	"context"
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
	"strings"
	"testing"
	"time"

	authnv1 "k8s.io/api/authentication/v1"

	"bonsai/pkg/authorities"
)

// api is the API server: the token "good" is bob's, unless it fails.
type api struct {
	asked int
	err   error
}

func (a *api) ReviewToken(_ context.Context, r *authnv1.TokenReview) (*authnv1.TokenReview, error) {
	a.asked++
	r = r.DeepCopy()
	if r.Spec.Token == "good" {
		r.Status = authnv1.TokenReviewStatus{Authenticated: true, User: authnv1.UserInfo{Username: "bob"}}
	}
	return r, a.err
}

// authority makes a CA, as PEM too, and a client certificate of it.
func authority(t *testing.T, user string, groups ...string) (ca []byte, client *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	make := func(template, parent *x509.Certificate) *x509.Certificate {
		template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour),
			time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return cert
	}
	root := &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	root = make(root, root)
	client = make(&x509.Certificate{Subject: pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, root)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw}), client
}

func request(token string, certs ...*x509.Certificate) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	r.TLS = &tls.ConnectionState{PeerCertificates: certs}
	return r
}

// TestAuthenticate: the first that knows the caller wins; bad credentials make nobody anonymous, none do.
func TestAuthenticate(t *testing.T) {
	t.Parallel()
	ca, admin := authority(t, "admin", "system:masters")
	_, stranger := authority(t, "admin", "system:masters")
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	roots, err := authorities.NewFile(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	known := Union{Certificates{roots}, NewTokens(&api{}, time.Minute, time.Now)}
	for _, c := range []struct {
		name      string
		by        Authenticator
		r         *http.Request
		user      string
		ok, error bool
	}{
		{"certificate", known, request("", admin), "admin system:masters,system:authenticated", true, false},
		{"strange certificate", known, request("", stranger), "", false, true},
		{"strange certificate, good token", known, request("Bearer good", stranger), "bob ", true, false},
		{"token", known, request("bearer good"), "bob ", true, false},
		{"bad token", known, request("Bearer bad"), "", false, true},
		{"another scheme", known, request("Basic good"), "", false, false},
		{"nothing", known, request(""), "", false, false},
		{"anonymous with nothing", Anonymous{known}, request(""), "system:anonymous system:unauthenticated", true,
			false},
		{"anonymous with a token", Anonymous{known}, request("Bearer good"), "bob ", true, false},
		{"anonymous with a bad token", Anonymous{known}, request("Bearer bad"), "", false, true},
		{"anonymous with a strange certificate", Anonymous{known}, request("", stranger), "", false, true},
		{"nobody is known", Anonymous{Union{}}, request("Bearer bad", stranger),
			"system:anonymous system:unauthenticated", true, false},
		{"no roots", Certificates{&authorities.Held{}}, request("", admin), "", false, false},
	} {
		user, ok, err := c.by.Authenticate(c.r)
		got := ""
		if ok {
			got = user.Username + " " + strings.Join(user.Groups, ",")
		}
		if got != c.user || ok != c.ok || (err != nil) != c.error {
			t.Errorf("%s: %q, %v, %v", c.name, got, ok, err)
		}
	}
}

// TestTokensAreRemembered, and what failed is not.
func TestTokensAreRemembered(t *testing.T) {
	t.Parallel()
	now, server := time.Unix(0, 0), &api{}
	tokens := NewTokens(server, time.Minute, func() time.Time { return now })
	expect := func(step, token string, asked int) {
		t.Helper()
		if _, _, _ = tokens.Authenticate(request("Bearer " + token)); server.asked != asked {
			t.Errorf("%s: asked %d times, not %d", step, server.asked, asked)
		}
	}
	expect("first", "good", 1)
	expect("again", "good", 1)
	expect("bad", "bad", 2)
	expect("bad again", "bad", 3)
	now = now.Add(time.Minute)
	expect("too old", "good", 4)
}
