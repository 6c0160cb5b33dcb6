package externaljwt

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
	signerapi "k8s.io/externaljwt/apis/v1"

	"bonsai/pkg/apiserver/authn/serviceaccount"
	"bonsai/pkg/safetext"
)

// Bounds of what the process returns of a token, in bytes of base64.
const (
	maxHeader    = 4 << 10
	maxSignature = 4 << 10
)

// Sign implements serviceaccount.Signer.
func (s *Signer) Sign(ctx context.Context, claims []byte) (string, error) {
	token, err := s.sign(ctx, claims)
	s.metrics.signed(err)
	return token, err
}

func (s *Signer) sign(ctx context.Context, claims []byte) (string, error) {
	payload := base64.RawURLEncoding.EncodeToString(claims)
	var resp *signerapi.SignJWTResponse
	if err := s.call(ctx, methodSign, func(ctx context.Context) (err error) {
		resp, err = s.client.Sign(ctx, &signerapi.SignJWTRequest{Claims: payload})
		return err
	}); err != nil {
		return "", fmt.Errorf("the external signer: %w", err)
	}
	if len(resp.GetHeader()) > maxHeader || len(resp.GetSignature()) > maxSignature {
		return "", errors.New("the external signer returned a header or a signature of more than 4 KiB")
	}
	h, err := s.parseHeader(resp.GetHeader())
	if err != nil {
		return "", fmt.Errorf("the external signer returned a bad header: %w", safetext.Error(err))
	}
	key, err := s.signingKey(ctx, h)
	if err != nil {
		return "", fmt.Errorf("the external signer: %w", err)
	}
	token := resp.GetHeader() + "." + payload + "." + resp.GetSignature()
	if err := verify(token, key, claims); err != nil {
		return "", fmt.Errorf("the external signer returned a bad signature: %w", safetext.Error(err))
	}
	return token, nil
}

// header is all that a token's header may say.
type header struct{ alg, kid, typ string }

// parseHeader reads a header, which must have these three fields, spelled so, and nothing else.
func (s *Signer) parseHeader(encoded string) (header, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return header{}, fmt.Errorf("while unwrapping header: %w", err)
	}
	var h header
	fields := map[string]*string{"alg": &h.alg, "kid": &h.kid, "typ": &h.typ}
	found := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &found); err != nil {
		return header{}, fmt.Errorf("while parsing header JSON: %w", err)
	}
	for name, value := range found {
		at := fields[name]
		if at == nil {
			return header{}, fmt.Errorf("it has the field %.64q", name)
		}
		if err := json.Unmarshal(value, at); err != nil {
			return header{}, fmt.Errorf("while parsing header JSON: %s: %w", name, err)
		}
	}
	switch {
	case h.typ != "JWT":
		return header{}, fmt.Errorf("typ is %.64q and must be \"JWT\"", h.typ)
	case h.kid == "" || len(h.kid) > maxKeyID:
		return header{}, fmt.Errorf("kid must have 1 to %d bytes", maxKeyID)
	case !slices.Contains(s.Algorithms(), jose.SignatureAlgorithm(h.alg)):
		return header{}, fmt.Errorf("bad signing algorithm %.64q", h.alg)
	}
	return h, nil
}

// signingKey returns the key that the header names, if it may sign.
func (s *Signer) signingKey(ctx context.Context, h header) (serviceaccount.PublicKey, error) {
	key, ok := s.find(ctx, h.kid, 0)
	switch none := (serviceaccount.PublicKey{}); {
	case !ok:
		return none, fmt.Errorf("it signed by the key %.64q, which is not among its keys", h.kid)
	case key.hidden:
		return none, fmt.Errorf("key used for signing JWT (kid: %s) is excluded from OIDC discovery docs",
			safetext.Text(h.kid))
	case string(key.Algorithm) != h.alg:
		return none, fmt.Errorf("it signed by %s, and the key %.64q is one of %s", h.alg, h.kid, key.Algorithm)
	}
	return key.PublicKey, nil
}

// verify checks that key signed exactly the claims.
func verify(token string, key serviceaccount.PublicKey, claims []byte) error {
	parsed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{key.Algorithm})
	if err != nil {
		return err
	}
	signed, err := parsed.Verify(key.Key)
	if err != nil {
		return err
	}
	if !bytes.Equal(signed, claims) {
		return errors.New("the claims were changed")
	}
	return nil
}
