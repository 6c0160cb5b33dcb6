package serviceaccount

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"
)

// Lifetimes of tokens.
const (
	// defaultLifetime is what a request gets that asks for no lifetime.
	defaultLifetime = time.Hour
	// warnLifetime is what the token volume of every pod asks for; such a token for the API server itself lives
	// extended instead, for clients that read their token only once, and warns from warnLifetime on.
	warnLifetime     = 3607 * time.Second
	extendedLifetime = 365 * 24 * time.Hour
)

// Request asks for one token.
type Request struct {
	Namespace      string
	ServiceAccount Ref
	// Pod, Secret and Node are what the token is bound to: at most one of Pod and Secret; Node beside Pod is the pod's
	// node.
	Pod, Secret, Node *Ref
	// Audiences are whom the token is for; empty: the API server.
	Audiences []string
	// Lifetime is what the client asked for; 0: one hour.
	Lifetime time.Duration
}

// IssuerConfig is what an Issuer needs.
type IssuerConfig struct {
	// URL is the "iss" of tokens, the first --service-account-issuer.
	URL string
	// Key signs tokens.
	Key crypto.Signer
	// APIAudiences are the API server's own (--api-audiences).
	APIAudiences []string
	// MaxLifetime bounds lifetimes; 0: no bound (--service-account-max-token-expiration).
	MaxLifetime time.Duration
	// Extend lets the tokens of pods for the API server live a year (--service-account-extend-token-expiration).
	Extend bool
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Issuer signs bound tokens.
type Issuer struct {
	cfg    IssuerConfig
	signer jose.Signer
}

// NewIssuer returns an Issuer.
func NewIssuer(cfg IssuerConfig) (*Issuer, error) {
	if cfg.URL == "" || cfg.Key == nil {
		return nil, errors.New("a token issuer needs its URL and a signing key")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	pub, err := NewPublicKey(cfg.Key.Public())
	if err != nil {
		return nil, fmt.Errorf("the signing key of service account tokens: %w", err)
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: pub.Algorithm, Key: jose.JSONWebKey{Key: cfg.Key, KeyID: pub.ID}}, nil)
	if err != nil {
		return nil, fmt.Errorf("the signing key of service account tokens: %w", err)
	}
	return &Issuer{cfg: cfg, signer: signer}, nil
}

// Issue signs a token. expires is the end that the answer shows; a token whose life is extended is valid for longer.
func (i *Issuer) Issue(_ context.Context, req Request) (token string, expires time.Time, err error) {
	now := i.cfg.Now()
	lifetime := req.Lifetime
	if lifetime == 0 {
		lifetime = defaultLifetime
	}
	if i.cfg.MaxLifetime > 0 && lifetime > i.cfg.MaxLifetime {
		lifetime = i.cfg.MaxLifetime
	}
	expires = now.Add(lifetime)
	audiences, end := req.Audiences, expires
	if len(audiences) == 0 {
		audiences = i.cfg.APIAudiences
	}
	private := &bound{Namespace: req.Namespace, ServiceAccount: req.ServiceAccount, Pod: req.Pod, Secret: req.Secret,
		Node: req.Node}
	if i.cfg.Extend && req.Pod != nil && lifetime == warnLifetime && within(audiences, i.cfg.APIAudiences) {
		private.WarnAfter = jwt.NewNumericDate(expires)
		end = now.Add(extendedLifetime)
	}
	public := jwt.Claims{
		Issuer:    i.cfg.URL,
		Subject:   username(req.Namespace, req.ServiceAccount.Name),
		ID:        uuid.NewString(),
		IssuedAt:  jwt.NewNumericDate(now),
		NotBefore: jwt.NewNumericDate(now),
		Expiry:    jwt.NewNumericDate(end),
	}
	token, err = jwt.Signed(i.signer).Claims(public).Claims(audienceClaim{audiences}).Claims(
		privateClaims{private}).Serialize()
	if err != nil {
		return "", time.Time{}, fmt.Errorf("signing a token for %s: %w", public.Subject, err)
	}
	return token, expires, nil
}

// within reports whether a is not empty and all of it is in b.
func within(a, b []string) bool {
	in := map[string]bool{}
	for _, s := range b {
		in[s] = true
	}
	for _, s := range a {
		if !in[s] {
			return false
		}
	}
	return len(a) > 0
}
