package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"bonsai/pkg/safetext"
)

// How often keys are fetched.
const (
	// fetchPause is the least time between two fetches: whoever sends tokens that name unknown keys causes no more.
	fetchPause = time.Second
	// fetchEvery is how soon a key counts no more that its issuer has removed.
	fetchEvery = 10 * time.Minute
)

// maxKeys bounds the keys of an issuer.
const maxKeys = 1000

// keySet holds the keys of an issuer. A token that none of them has signed makes it fetch them again, because issuers
// replace their keys; all who wait share one fetch. It implements KeySet of go-oidc.
type keySet struct {
	url   string
	fetch fetcher
	algs  []jose.SignatureAlgorithm
	now   func() time.Time
	// fetched is called after each fetch; document is nil if it failed.
	fetched func(document []byte)

	mu    sync.Mutex
	keys  []jose.JSONWebKey // guarded by mu; the slice itself does not change
	begun time.Time         // guarded by mu: the start of the last fetch
	wait  *flight           // guarded by mu: the fetch under way; nil: there is none
}

// flight is a fetch under way. err is set before done is closed.
type flight struct {
	done chan struct{}
	err  error
}

var errSignature = errors.New("failed to verify id token signature")

// VerifySignature returns the payload of a token that one of the keys has signed.
func (s *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSigned(token, s.algs)
	if err != nil {
		return nil, fmt.Errorf("malformed jwt: %w", err)
	}
	if len(signed.Signatures) != 1 {
		return nil, errors.New("the token does not have exactly one signature")
	}
	if payload, ok := verify(signed, s.current()); ok {
		return payload, nil
	}
	fetched, err := s.refresh(ctx)
	if err != nil {
		return nil, fmt.Errorf("fetching keys %w", err)
	}
	if fetched {
		if payload, ok := verify(signed, s.current()); ok {
			return payload, nil
		}
	}
	return nil, errSignature
}

// verify tries the keys that the token may name.
func verify(signed *jose.JSONWebSignature, keys []jose.JSONWebKey) ([]byte, bool) {
	header := signed.Signatures[0].Header
	for i := range keys {
		k := &keys[i]
		if header.KeyID != "" && k.KeyID != header.KeyID || k.Algorithm != "" && k.Algorithm != header.Algorithm {
			continue
		}
		if payload, err := signed.Verify(k); err == nil {
			return payload, true
		}
	}
	return nil, false
}

func (s *keySet) current() []jose.JSONWebKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys
}

// refresh fetches the keys, or waits for the fetch under way. Within fetchPause of the last one it returns false.
func (s *keySet) refresh(ctx context.Context) (bool, error) {
	s.mu.Lock()
	f := s.wait
	if f == nil {
		if now := s.now(); now.Sub(s.begun) >= fetchPause {
			s.begun = now
			f = &flight{done: make(chan struct{})}
			s.wait = f
			// Not for this caller alone: its end must not fail the others.
			go s.fly(context.WithoutCancel(ctx), f)
		}
	}
	s.mu.Unlock()
	if f == nil {
		return false, nil
	}
	select {
	case <-f.done:
		return true, f.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// fly fetches; the fetcher bounds its time.
func (s *keySet) fly(ctx context.Context, f *flight) {
	document, err := s.fetch(ctx, s.url)
	var keys []jose.JSONWebKey
	if err == nil {
		keys, err = parseKeys(document)
	}
	if err != nil {
		document = nil
	}
	s.fetched(document)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.keys = keys
	}
	s.wait, f.err = nil, err
	close(f.done)
}

// parseKeys reads a JSON Web Key Set. It leaves out keys that verify no token here: those for encryption, symmetric
// ones, and unknown kinds.
func parseKeys(document []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(document, &set); err != nil {
		return nil, fmt.Errorf("it is no JSON Web Key Set: %w", safetext.Error(err))
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the JSON Web Key Set has %d keys, more than %d", len(set.Keys), maxKeys)
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(raw) != nil || !k.Valid() || !k.IsPublic() || k.Use == "enc" {
			continue
		}
		keys = append(keys, k)
	}
	return keys, nil
}
