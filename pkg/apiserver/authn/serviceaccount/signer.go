package serviceaccount

import (
	"context"
	"crypto"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// Signer makes tokens of claims.
type Signer interface {
	// Sign returns the web token whose payload is claims, byte for byte.
	Sign(ctx context.Context, claims []byte) (token string, err error)
}

// keySigner signs by a key of this process.
type keySigner struct{ signer jose.Signer }

// NewSigner returns what signs by a key of this process.
func NewSigner(key crypto.Signer) (Signer, error) {
	pub, err := NewPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("the signing key of service account tokens: %w", err)
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: pub.Algorithm, Key: jose.JSONWebKey{Key: key, KeyID: pub.ID}}, nil)
	if err != nil {
		return nil, fmt.Errorf("the signing key of service account tokens: %w", err)
	}
	return keySigner{signer}, nil
}

// Sign implements Signer.
func (s keySigner) Sign(_ context.Context, claims []byte) (string, error) {
	signed, err := s.signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
