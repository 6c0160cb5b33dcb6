package tokenkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// TestDescribe: RFC 7518 fixes the algorithm of each curve; other keys are refused.
func TestDescribe(t *testing.T) {
	t.Parallel()
	curve := func(c elliptic.Curve) crypto.Signer {
		k, err := ecdsa.GenerateKey(c, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key  crypto.Signer
		want jose.SignatureAlgorithm
	}{
		{r, jose.RS256}, {curve(elliptic.P256()), jose.ES256}, {curve(elliptic.P384()), jose.ES384},
		{curve(elliptic.P521()), jose.ES512}, {curve(elliptic.P224()), ""}, {ed, ""},
	} {
		alg, id, err := Describe(c.key.Public())
		if alg != c.want || (err == nil) != (c.want != "") || len(id) != 43 && err == nil {
			t.Errorf("%T: %q %q %v, want %q", c.key, alg, id, err, c.want)
		}
		der, err := x509.MarshalPKCS8PrivateKey(c.key)
		if err != nil {
			t.Fatal(err)
		}
		read, err := ParsePrivate(&pem.Block{Type: "ANYTHING", Bytes: der})
		if err != nil || !read.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(c.key.Public()) {
			t.Errorf("%T: read %v, %v", c.key, read, err)
		}
	}
	if _, err := ParsePrivate(&pem.Block{Bytes: []byte("no key")}); err == nil {
		t.Error("no key was read as one")
	}
}
