package serviceaccount

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"

	"github.com/go-jose/go-jose/v4"
)

// PublicKey verifies tokens. ID is the key's name in a token's "kid" header: the base64url SHA-256 of its PKIX form.
type PublicKey struct {
	ID        string
	Algorithm jose.SignatureAlgorithm
	Key       crypto.PublicKey
}

// NewPublicKey describes an RSA or ECDSA key.
func NewPublicKey(key crypto.PublicKey) (PublicKey, error) {
	alg, err := algorithm(key)
	if err != nil {
		return PublicKey{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return PublicKey{}, fmt.Errorf("encoding a public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return PublicKey{ID: base64.RawURLEncoding.EncodeToString(sum[:]), Algorithm: alg, Key: key}, nil
}

func algorithm(key crypto.PublicKey) (jose.SignatureAlgorithm, error) {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return jose.RS256, nil
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256():
			return jose.ES256, nil
		case elliptic.P384():
			return jose.ES384, nil
		case elliptic.P521():
			return jose.ES512, nil
		}
		return "", fmt.Errorf("elliptic curve %s is not supported: must be P-256, P-384 or P-521",
			k.Curve.Params().Name)
	}
	return "", fmt.Errorf("key type %T is not supported: must be RSA or ECDSA", key)
}

// LoadPublicKeys reads the keys of PEM files (--service-account-key-file); a private key or a certificate counts as its
// public key, and a file may hold several.
func LoadPublicKeys(paths ...string) ([]PublicKey, error) {
	var keys []PublicKey
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading service account keys: %w", err)
		}
		found, err := parsePublicKeys(raw)
		if err != nil {
			return nil, fmt.Errorf("reading service account keys of %s: %w", path, err)
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

func parsePublicKeys(raw []byte) ([]PublicKey, error) {
	var keys []PublicKey
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		pub := publicOf(block)
		if pub == nil {
			continue
		}
		k, err := NewPublicKey(pub)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("data does not contain any valid RSA or ECDSA public keys")
	}
	return keys, nil
}

// publicOf returns the public key of a PEM block, nil if it holds none.
func publicOf(block *pem.Block) crypto.PublicKey {
	if signer, err := parsePrivateKey(block); err == nil {
		return signer.Public()
	}
	if k, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
		return k
	}
	if k, err := x509.ParsePKCS1PublicKey(block.Bytes); err == nil {
		return k
	}
	if c, err := x509.ParseCertificate(block.Bytes); err == nil {
		return c.PublicKey
	}
	return nil
}

// LoadSigningKey reads the first private key of a PEM file (--service-account-signing-key-file).
func LoadSigningKey(path string) (crypto.Signer, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the service account signing key: %w", err)
	}
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		if signer, err := parsePrivateKey(block); err == nil {
			return signer, nil
		}
	}
	return nil, fmt.Errorf("reading the service account signing key: %s does not contain a valid RSA or ECDSA private key", path)
}

func parsePrivateKey(block *pem.Block) (crypto.Signer, error) {
	if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return k, nil
	}
	if k, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return k, nil
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := k.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("key type %T cannot sign", k)
	}
	return signer, nil
}
