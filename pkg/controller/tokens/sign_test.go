package tokens

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/authn/serviceaccount"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func ecKey(c elliptic.Curve) *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(c, rand.Reader)) }

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func pkcs8(key any) []byte { return block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key))) }

func account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "robot", UID: "u1"}}
}

// TestTokenIsAccepted signs with each kind of key; the API server's authenticator must take the token.
func TestTokenIsAccepted(t *testing.T) {
	t.Parallel()
	rsaKey, p256 := must(rsa.GenerateKey(rand.Reader, 2048)), ecKey(elliptic.P256())
	p384, p521 := ecKey(elliptic.P384()), ecKey(elliptic.P521())
	for name, c := range map[string]struct {
		key crypto.Signer
		pem []byte
	}{
		"RSA PKCS1":             {rsaKey, block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey))},
		"RSA PKCS8":             {rsaKey, pkcs8(rsaKey)},
		"P-256 SEC1":            {p256, block("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(p256)))},
		"P-384 PKCS8":           {p384, pkcs8(p384)},
		"P-521 PKCS8":           {p521, pkcs8(p521)},
		"behind its parameters": {p256, append(block("EC PARAMETERS", []byte{6, 0}), pkcs8(p256)...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			signer, err := NewSigner(c.pem)
			if err != nil {
				t.Fatal(err)
			}
			token, err := signer.Sign(
				claimsFor(account(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s1"}}))
			if err != nil {
				t.Fatal(err)
			}
			auth := serviceaccount.New(
				serviceaccount.Config{Keys: serviceaccount.FixedKeys{
					must(serviceaccount.NewPublicKey(c.key.Public()))}})
			user, _, err := auth.AuthenticateToken(t.Context(), token, nil)
			if err != nil || user == nil {
				t.Fatalf("user %v, error %v", user, err)
			}
			if user.Name != "system:serviceaccount:ns:robot" || user.UID != "u1" {
				t.Errorf("user %+v", user)
			}
		})
	}
}

// TestClaims has the claims by their names, which other systems read; the token never expires.
func TestClaims(t *testing.T) {
	t.Parallel()
	key := ecKey(elliptic.P256())
	token := must(must(NewSigner(pkcs8(key))).Sign(
		claimsFor(account(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s1"}})))
	var got map[string]string
	if err := must(jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})).Claims(key.Public(),
		&got); err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{
		"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:ns:robot",
		"kubernetes.io/serviceaccount/namespace":   "ns",
		"kubernetes.io/serviceaccount/secret.name": "s1", "kubernetes.io/serviceaccount/service-account.name": "robot",
		"kubernetes.io/serviceaccount/service-account.uid": "u1",
	}; !maps.Equal(got, want) {
		t.Errorf("claims %v, want %v", got, want)
	}
}

// TestBadKeys: the error says what is wrong, and never shows the key.
func TestBadKeys(t *testing.T) {
	t.Parallel()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := block("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(ecKey(elliptic.P256()).Public())))
	for _, c := range []struct {
		name string
		pem  []byte
		want string
	}{
		{"empty", nil, "the data has no PEM block"},
		{"no PEM", []byte("secret words"), "the data has no PEM block"},
		{"damaged", block("RSA PRIVATE KEY", []byte("secret words")),
			`no readable one in the PEM blocks ["RSA PRIVATE KEY"]`},
		{"public", public, `no readable one in the PEM blocks ["PUBLIC KEY"]`},
		{"Ed25519", pkcs8(ed), "key type ed25519.PublicKey is not supported: must be RSA or ECDSA"},
		{"P-224", pkcs8(ecKey(elliptic.P224())),
			"elliptic curve P-224 is not supported: must be P-256, P-384 or P-521"},
	} {
		if _, err := NewSigner(c.pem); err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
