// Package tokenkey describes the keys of service account tokens. kube-apiserver and kube-controller-manager both sign
// with them, and kube-apiserver verifies: all must derive the same algorithm and the same key ID from a key.
package tokenkey

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

	"github.com/go-jose/go-jose/v4"
)

// Describe returns the algorithm of a public key, which must be RSA or ECDSA on a curve that RFC 7518 names, and its
// ID, the value of a token's "kid" header: the base64url SHA-256 of the key's PKIX form.
func Describe(key crypto.PublicKey) (alg jose.SignatureAlgorithm, id string, err error) {
	if alg, err = algorithm(key); err != nil {
		return "", "", err
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", "", fmt.Errorf("encoding a public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return alg, base64.RawURLEncoding.EncodeToString(sum[:]), nil
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

// ParsePrivate reads a private key from a PEM block, whatever the block's type says: files that other tools wrote are
// labelled in many ways.
func ParsePrivate(block *pem.Block) (crypto.Signer, error) {
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
