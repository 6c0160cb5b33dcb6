package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"bonsai/api/admissionregistration/expression"
	"bonsai/pkg/apiserver/configfile"
	"bonsai/pkg/apiserver/request"
)

// How long the next try waits to find an issuer that did not answer.
const (
	firstPause = time.Second
	lastPause  = 10 * time.Second
)

// budget is what all expressions may cost for one token.
const budget = expression.PolicyBudget

// algorithms are those of signatures that --oidc-signing-algs may name, and that the issuers of a file may use.
func algorithms() []string {
	return []string{gooidc.RS256, gooidc.RS384, gooidc.RS512, gooidc.ES256, gooidc.ES384, gooidc.ES512, gooidc.PS256,
		gooidc.PS384, gooidc.PS512}
}

// credentialIDKey is the user's extra that tells tokens apart: "JTI=<the token's ID>".
const credentialIDKey = "authentication.kubernetes.io/credential-id"

// issuer knows the tokens of one OpenID provider.
type issuer struct {
	config  *JWT
	rules   *rules
	fetch   fetcher
	now     func() time.Time
	metrics *Metrics
	log     *slog.Logger

	// found is nil until the provider has said where its keys are.
	found atomic.Pointer[provider]
	ready chan struct{} // closed when found is set
}

// provider is an issuer whose keys are known.
type provider struct {
	keys     *keySet
	verifier *gooidc.IDTokenVerifier
}

// dialer returns what connects to an issuer by its egressSelectorType; nil: it is connected to directly.
func (o *Options) dialer(kind string) (dialer, error) {
	if kind == "" {
		return nil, nil
	}
	if o.Egress == nil {
		return nil, fmt.Errorf("oidc: egress lookup required with egress selector type %q", kind)
	}
	return o.Egress(kind), nil
}

// newIssuer returns an issuer that is not found yet.
func newIssuer(config *JWT, compiled *rules, o *Options) (*issuer, error) {
	dial, err := o.dialer(config.Issuer.EgressSelectorType)
	if err != nil {
		return nil, err
	}
	fetch, err := newFetcher(config.Issuer.CertificateAuthority, dial)
	if err != nil {
		return nil, err
	}
	return &issuer{config: config, rules: compiled, fetch: fetch, now: o.Now, metrics: o.Metrics, log: o.Log,
		ready: make(chan struct{})}, nil
}

// run finds the provider, and then keeps its keys fresh, until ctx ends.
func (i *issuer) run(ctx context.Context) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := i.find(ctx)
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			i.log.Error("the issuer of tokens is not found: its tokens are refused", "issuer", i.config.Issuer.URL,
				"err", err, "again", pause)
		}
		if !configfile.Sleep(ctx, pause) {
			return
		}
	}
	for configfile.Sleep(ctx, fetchEvery) {
		if _, err := i.found.Load().keys.refresh(ctx); err != nil && ctx.Err() == nil {
			i.log.Error("the keys of the issuer are not fetched: the earlier ones are in use", "issuer",
				i.config.Issuer.URL, "err", err)
		}
	}
}

func (i *issuer) find(ctx context.Context) error {
	url, err := discover(ctx, i.fetch, &i.config.Issuer)
	if err != nil {
		return err
	}
	algs := i.config.algorithms
	if algs == nil {
		algs = algorithms()
	}
	keys := &keySet{url: url, fetch: i.fetch, now: i.now, fetched: i.metrics.keys(i.config.Issuer.URL, i.now)}
	for _, a := range algs {
		keys.algs = append(keys.algs, jose.SignatureAlgorithm(a))
	}
	if _, err := keys.refresh(ctx); err != nil {
		return err
	}
	i.found.Store(&provider{keys: keys, verifier: gooidc.NewVerifier(i.config.Issuer.URL, keys,
		&gooidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: algs, Now: i.now})})
	close(i.ready)
	return nil
}

// authenticate returns the user of a token that names this issuer. Nothing of the token counts before its signature is
// verified.
func (i *issuer) authenticate(ctx context.Context, token string) (*request.User, error) {
	found := i.found.Load()
	if found == nil {
		return nil, errors.New("oidc: authenticator not initialized")
	}
	verified, err := found.verifier.Verify(ctx, token)
	if err != nil {
		return nil, fmt.Errorf("oidc: verify token: %w", err)
	}
	if !slices.ContainsFunc(verified.Audience,
		func(a string) bool { return slices.Contains(i.config.Issuer.Audiences, a) }) {
		return nil, fmt.Errorf("oidc: expected audience in %q got %q", i.config.Issuer.Audiences, verified.Audience)
	}
	var payload json.RawMessage
	if err := verified.Claims(&payload); err != nil {
		return nil, fmt.Errorf("oidc: parse claims: %w", err)
	}
	c, err := parseClaims(payload)
	if err != nil {
		return nil, err
	}
	if err := c.unambiguous(); err != nil {
		return nil, err
	}
	return i.user(ctx, c)
}

// user makes the user of verified claims, and checks the rules.
func (i *issuer) user(ctx context.Context, c claims) (*request.User, error) {
	left := expression.Budget(budget)
	v := expression.NewEvaluation(&expression.Variables{Claims: c})
	u := &request.User{}
	var err error
	if u.Name, err = i.username(ctx, c, v, &left); err != nil {
		return nil, err
	}
	if u.Groups, err = i.groups(ctx, c, v, &left); err != nil {
		return nil, err
	}
	if u.UID, err = i.uid(ctx, c, v, &left); err != nil {
		return nil, err
	}
	if u.Extra, err = i.extra(ctx, c, v, &left); err != nil {
		return nil, err
	}
	if err := i.checkClaims(ctx, c, v, &left); err != nil {
		return nil, err
	}
	if err := i.checkUser(ctx, u, &left); err != nil {
		return nil, err
	}
	return u, nil
}

func (i *issuer) username(ctx context.Context, c claims, v *expression.Evaluation,
	left *expression.Budget) (string, error) {
	m := &i.config.ClaimMappings.Username
	if p := i.rules.username; p != nil {
		out, err := p.Evaluate(ctx, v, left)
		if err != nil {
			return "", fmt.Errorf("oidc: error evaluating username claim expression: %w", err)
		}
		name, err := text(out)
		if err != nil {
			return "", fmt.Errorf("oidc: error evaluating username claim expression: %w", err)
		}
		if name == "" {
			return "", errors.New("oidc: the username claim expression evaluated to an empty string")
		}
		// Upstream: an address that nobody verified is nobody's name.
		if p.NamesClaim("email") {
			if ok, present := c["email_verified"]; present {
				if _, isBool := ok.(bool); !isBool {
					return "", errors.New("oidc: email_verified claim value must be a boolean when claims.email is used")
				}
			}
		}
		return name, nil
	}
	name, err := c.text(m.Claim)
	if err != nil {
		return "", fmt.Errorf("oidc: parse username claims %q: %w", m.Claim, err)
	}
	if name == "" {
		return "", fmt.Errorf("oidc: the username claim %q is empty", m.Claim)
	}
	if m.Claim == "email" {
		if verified, present := c["email_verified"]; present {
			is, isBool := verified.(bool)
			if !isBool {
				return "", errors.New("oidc: parse 'email_verified' claim: it is no boolean")
			}
			if !is {
				return "", errors.New("oidc: email not verified")
			}
		}
	}
	return prefixed(m.Prefix, name), nil
}

func prefixed(prefix *string, value string) string {
	if prefix == nil {
		return value
	}
	return *prefix + value
}

func (i *issuer) groups(ctx context.Context, c claims, v *expression.Evaluation,
	left *expression.Budget) ([]string, error) {
	m := &i.config.ClaimMappings.Groups
	if p := i.rules.groups; p != nil {
		out, err := p.Evaluate(ctx, v, left)
		if err != nil {
			return nil, fmt.Errorf("oidc: error evaluating group claim expression: %w", err)
		}
		groups, err := texts(out)
		if err != nil {
			return nil, fmt.Errorf("oidc: error evaluating group claim expression: %w", err)
		}
		return groups, nil
	}
	if m.Claim == "" {
		return nil, nil
	}
	if c.distributed(m.Claim) {
		return nil, fmt.Errorf("oidc: the groups claim %q is a distributed claim, which is not supported", m.Claim)
	}
	groups, err := c.texts(m.Claim)
	if err != nil {
		return nil, fmt.Errorf("oidc: parse groups claim %q: %w", m.Claim, err)
	}
	for n := range groups {
		groups[n] = prefixed(m.Prefix, groups[n])
	}
	return groups, nil
}

func (i *issuer) uid(ctx context.Context, c claims, v *expression.Evaluation,
	left *expression.Budget) (string, error) {
	if p := i.rules.uid; p != nil {
		out, err := p.Evaluate(ctx, v, left)
		if err != nil {
			return "", fmt.Errorf("oidc: error evaluating uid claim expression: %w", err)
		}
		uid, err := text(out)
		if err != nil {
			return "", fmt.Errorf("oidc: error evaluating uid claim expression: %w", err)
		}
		return uid, nil
	}
	name := i.config.ClaimMappings.UID.Claim
	if name == "" {
		return "", nil
	}
	uid, err := c.text(name)
	if err != nil {
		return "", fmt.Errorf("oidc: parse uid claim %q: %w", name, err)
	}
	return uid, nil
}

func (i *issuer) extra(ctx context.Context, c claims, v *expression.Evaluation,
	left *expression.Budget) (map[string][]string, error) {
	out := map[string][]string{}
	for n, p := range i.rules.extra {
		value, err := p.Evaluate(ctx, v, left)
		if err != nil {
			return nil, fmt.Errorf("oidc: error evaluating extra claim expression: %w", err)
		}
		values, err := texts(value)
		if err != nil {
			return nil, fmt.Errorf("oidc: error evaluating extra claim expression: %w", err)
		}
		if len(values) > 0 {
			out[i.config.ClaimMappings.Extra[n].Key] = values
		}
	}
	if id, ok := c["jti"].(string); ok && id != "" {
		out[credentialIDKey] = []string{"JTI=" + id}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}
