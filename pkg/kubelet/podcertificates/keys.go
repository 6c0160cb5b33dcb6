package podcertificates

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// maxKeys bounds the RSA keys that are made at a time: each takes a CPU for up to some seconds.
const maxKeys = 2

// newKey makes a key of a type that the field keyType names. An RSA key waits for its turn until ctx ends.
func (m *Manager) newKey(ctx context.Context, keyType string) (crypto.Signer, error) {
	switch keyType {
	case "RSA3072":
		return m.newRSA(ctx, 3072)
	case "RSA4096":
		return m.newRSA(ctx, 4096)
	case "ECDSAP256":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ECDSAP384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ECDSAP521":
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "ED25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("the key type %q is not known", keyType)
}

func (m *Manager) newRSA(ctx context.Context, bits int) (crypto.Signer, error) {
	select {
	case m.keys <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-m.keys }()
	return rsa.GenerateKey(rand.Reader, bits)
}

// stub returns a PKCS#10 request (DER) that has the key, and nothing else: it proves that its sender has the key. What
// the certificate is about, the PodCertificateRequest says.
func stub(key crypto.Signer) ([]byte, error) {
	return x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
}

// privatePEM returns a key in a PEM block with PKCS#8.
func privatePEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// cleanChain returns the certificates of a chain in their order, without text between them and headers.
func cleanChain(chain string) ([]byte, error) {
	var out []byte
	for rest := []byte(chain); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("the certificate chain has a PEM block %q", block.Type)
		}
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
	if out == nil {
		return nil, errors.New("the certificate chain has no certificate")
	}
	return out, nil
}
