package serviceaccount

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"

	"bonsai/pkg/apiserver/request"
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
	// Signer signs tokens.
	Signer Signer
	// APIAudiences are the API server's own (--api-audiences).
	APIAudiences []string
	// MaxLifetime bounds lifetimes; 0: no bound (--service-account-max-token-expiration).
	MaxLifetime time.Duration
	// MaxExtended bounds the life that Extend gives; 0: a year.
	MaxExtended time.Duration
	// Extend lets the tokens of pods for the API server live a year (--service-account-extend-token-expiration).
	Extend bool
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Issuer makes bound tokens.
type Issuer struct{ cfg IssuerConfig }

// NewIssuer returns an Issuer.
func NewIssuer(cfg IssuerConfig) (*Issuer, error) {
	if cfg.URL == "" || cfg.Signer == nil {
		return nil, errors.New("a token issuer needs its URL and what signs")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.MaxExtended == 0 || cfg.MaxExtended > extendedLifetime {
		cfg.MaxExtended = extendedLifetime
	}
	return &Issuer{cfg: cfg}, nil
}

// Issue signs a token. expires is the end that the answer shows; a token whose life is extended is valid for longer.
func (i *Issuer) Issue(ctx context.Context, req Request) (token string, expires time.Time, err error) {
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
		end = now.Add(i.cfg.MaxExtended)
	}
	public := jwt.Claims{
		Issuer:    i.cfg.URL,
		Subject:   username(req.Namespace, req.ServiceAccount.Name),
		ID:        uuid.NewString(),
		IssuedAt:  jwt.NewNumericDate(now),
		NotBefore: jwt.NewNumericDate(now),
		Expiry:    jwt.NewNumericDate(end),
	}
	claims, err := merge(public, audienceClaim{audiences}, privateClaims{private})
	if err == nil {
		token, err = i.cfg.Signer.Sign(ctx, claims)
	}
	if err != nil {
		return "", time.Time{}, fmt.Errorf("signing a token for %s: %w", public.Subject, err)
	}
	// The audit log then tells which request issued the token with which another one came.
	request.Annotate(ctx, issuedCredentialID, "JTI="+public.ID)
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

// merge returns the JSON object with the fields of all parts.
func merge(parts ...any) ([]byte, error) {
	all := map[string]json.RawMessage{}
	for _, part := range parts {
		raw, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &all); err != nil {
			return nil, err
		}
	}
	return json.Marshal(all)
}
