// Package oidctest is a small OpenID provider for tests: it publishes keys on loopback, and signs any claims.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// Key signs tokens under a name.
type Key struct {
	ID        string
	Algorithm jose.SignatureAlgorithm
	Private   crypto.Signer
}

// NewRSA returns an RSA key.
func NewRSA(t testing.TB, id string) Key {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return Key{ID: id, Algorithm: jose.RS256, Private: k}
}

// NewECDSA returns a key on the curve P-256.
func NewECDSA(t testing.TB, id string) Key {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Key{ID: id, Algorithm: jose.ES256, Private: k}
}

// Sign returns a token with the claims, which are encoded as JSON unless they are bytes.
func (k Key) Sign(t testing.TB, claims any) string {
	t.Helper()
	return k.sign(t, claims, nil)
}

// SignEmbedded is Sign of a token that brings the key by which it wants to be verified.
func (k Key) SignEmbedded(t testing.TB, claims any) string {
	t.Helper()
	return k.sign(t, claims, &jose.SignerOptions{EmbedJWK: true})
}

func (k Key) sign(t testing.TB, claims any, o *jose.SignerOptions) string {
	t.Helper()
	payload, ok := claims.([]byte)
	if !ok {
		var err error
		if payload, err = json.Marshal(claims); err != nil {
			t.Fatal(err)
		}
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: k.Algorithm, Key: jose.JSONWebKey{Key: k.Private, KeyID: k.ID}}, o)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Provider is an OpenID provider. Its handler may be changed while it serves.
type Provider struct {
	// URL is the issuer, Authority the PEM certificate that it is known by.
	URL, Authority string

	mu       sync.Mutex
	keys     []Key            // guarded by mu
	override http.HandlerFunc // guarded by mu; nil: the provider answers
	fetches  int              // guarded by mu: of the keys
}

// New returns a provider that publishes keys, until the test ends.
func New(t testing.TB, keys ...Key) *Provider {
	t.Helper()
	p := &Provider{keys: keys}
	s := httptest.NewTLSServer(http.HandlerFunc(p.serve))
	t.Cleanup(s.Close)
	p.URL = s.URL
	p.Authority = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return p
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	keys, override := p.keys, p.override
	if r.URL.Path == "/keys" {
		p.fetches++
	}
	p.mu.Unlock()
	if override != nil {
		override(w, r)
		return
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer(w, map[string]any{"issuer": p.URL, "jwks_uri": p.URL + "/keys"})
	case "/keys":
		set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
		for _, k := range keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.Private.Public(), KeyID: k.ID,
				Algorithm: string(k.Algorithm), Use: "sig"})
		}
		answer(w, set)
	default:
		http.NotFound(w, r)
	}
}

func answer(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document)
}

// Publish replaces the keys.
func (p *Provider) Publish(keys ...Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = keys
}

// Answer lets h answer every request; nil: the provider.
func (p *Provider) Answer(h http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.override = h
}

// Fetches returns how often the keys were asked for.
func (p *Provider) Fetches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches
}
