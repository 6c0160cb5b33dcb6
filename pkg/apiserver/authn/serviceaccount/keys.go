package serviceaccount

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"slices"

	"github.com/go-jose/go-jose/v4"

	"bonsai/pkg/tokenkey"
)

// PublicKey verifies tokens. ID is the key's name in a token's "kid" header.
type PublicKey struct {
	ID        string
	Algorithm jose.SignatureAlgorithm
	Key       crypto.PublicKey
}

// NewPublicKey describes an RSA or ECDSA key. Its ID is the base64url SHA-256 of its PKIX form.
func NewPublicKey(key crypto.PublicKey) (PublicKey, error) {
	alg, id, err := tokenkey.Describe(key)
	if err != nil {
		return PublicKey{}, err
	}
	return PublicKey{ID: id, Algorithm: alg, Key: key}, nil
}

// Keys are the keys that verify tokens.
type Keys interface {
	// Algorithms are those that a token may be signed by.
	Algorithms() []jose.SignatureAlgorithm
	// For returns the keys that may have signed a token whose header names id; "" names none.
	For(ctx context.Context, id string) []PublicKey
	// Published returns the keys that others verify tokens by, and for how many seconds they may keep them.
	Published() (keys []PublicKey, maxAge int)
}

// FixedKeys are keys that never change.
type FixedKeys []PublicKey

var _ Keys = FixedKeys(nil)

// Algorithms implements Keys: those of the keys.
func (k FixedKeys) Algorithms() []jose.SignatureAlgorithm { return algorithms(k) }

// For implements Keys: the key of that name first, then the others, as a key may have been named by others.
func (k FixedKeys) For(_ context.Context, id string) []PublicKey {
	out := make([]PublicKey, 0, len(k))
	for _, named := range []bool{true, false} {
		for _, key := range k {
			if (key.ID == id) == named {
				out = append(out, key)
			}
		}
	}
	return out
}

// Published implements Keys: all, for an hour.
func (k FixedKeys) Published() (keys []PublicKey, maxAge int) { return k, 3600 }

// algorithms returns each algorithm of keys once.
func algorithms(keys []PublicKey) []jose.SignatureAlgorithm {
	out := []jose.SignatureAlgorithm{}
	for _, k := range keys {
		if !slices.Contains(out, k.Algorithm) {
			out = append(out, k.Algorithm)
		}
	}
	return out
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
	if signer, err := tokenkey.ParsePrivate(block); err == nil {
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
		if signer, err := tokenkey.ParsePrivate(block); err == nil {
			return signer, nil
		}
	}
	return nil, fmt.Errorf("reading the service account signing key: %s does not contain a valid RSA or ECDSA private key", path)
}
