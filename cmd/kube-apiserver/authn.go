package main

import (
	"crypto"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/authn/anonymous"
	"bonsai/pkg/apiserver/authn/requestheader"
	"bonsai/pkg/apiserver/authn/serviceaccount"
	"bonsai/pkg/apiserver/authn/tokenfile"
	"bonsai/pkg/apiserver/authn/x509"
)

// The cache of tokens that were found good: what is revoked may live that much longer.
const (
	tokenCacheTTL  = 10 * time.Second
	tokenCacheSize = 4096
)

// authentication is everything about who asks.
type authentication struct {
	authenticator authn.Authenticator
	tokens        authn.TokenAuthenticator
	issuer        *serviceaccount.Issuer
	audiences     []string
	// keys are the handlers of the issuer's discovery documents, by path.
	keys map[string]http.Handler
	// clientCA and proxyCA are what TLS asks clients to present a certificate of; nil without the flags.
	clientCA, proxyCA *authn.CAFile
}

// newAuthentication builds the union: front proxy, client certificates, token file, service accounts; anonymous last, for
// health and version only.
func newAuthentication(o *options, s *stores) (*authentication, error) {
	a := &authentication{audiences: o.audiences}
	if len(a.audiences) == 0 {
		a.audiences = o.issuers[:1]
	}
	var list []authn.Authenticator
	if o.requestHeaderCA != "" {
		ca, err := authn.NewCAFile(o.requestHeaderCA)
		if err != nil {
			return nil, fmt.Errorf("--requestheader-client-ca-file: %w", err)
		}
		a.proxyCA = ca
		list = append(list, requestheader.New(requestheader.Config{CA: ca, AllowedNames: o.requestHeaderNames, UsernameHeaders: o.requestHeaderUsers,
			UIDHeaders: o.requestHeaderUIDs, GroupHeaders: o.requestHeaderGroups, ExtraHeaderPrefixes: o.requestHeaderExtra}))
	}
	if o.clientCA != "" {
		ca, err := authn.NewCAFile(o.clientCA)
		if err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		a.clientCA = ca
		list = append(list, x509.New(x509.Config{CA: ca}))
	}
	if err := a.addTokens(o, s); err != nil {
		return nil, err
	}
	list = append(list, authn.Bearer(a.tokens))
	a.authenticator = authn.WithAuthenticatedGroup(authn.Union(list...))
	if o.anonymous {
		a.authenticator = authn.OrElse(a.authenticator, anonymous.Authenticator{Paths: anonymous.HealthAndVersion()})
	}
	return a, nil
}

// addTokens builds what knows bearer tokens, and the issuer of service account tokens.
func (a *authentication) addTokens(o *options, s *stores) error {
	var tokens []authn.TokenAuthenticator
	if o.tokenFile != "" {
		t, err := tokenfile.Open(o.tokenFile)
		if err != nil {
			return fmt.Errorf("--token-auth-file: %w", err)
		}
		tokens = append(tokens, t)
	}
	signer, err := serviceaccount.LoadSigningKey(o.signingKey)
	if err != nil {
		return fmt.Errorf("--service-account-signing-key-file: %w", err)
	}
	if a.issuer, err = serviceaccount.NewIssuer(serviceaccount.IssuerConfig{URL: o.issuers[0], Key: signer, APIAudiences: a.audiences,
		MaxLifetime: o.maxTokenExpiration, Extend: o.extendTokens}); err != nil {
		return err
	}
	keys, err := verifyingKeys(o, signer)
	if err != nil {
		return err
	}
	cfg := serviceaccount.Config{Keys: keys, Issuers: o.issuers, APIAudiences: a.audiences}
	if o.accountLookup {
		cfg.ServiceAccounts, cfg.Pods, cfg.Secrets, cfg.Nodes = s.of("", "serviceaccounts"), s.of("", "pods"), s.of("", "secrets"), s.of("", "nodes")
	}
	tokens = append(tokens, authn.Cache(serviceaccount.New(cfg), tokenCacheTTL, tokenCacheSize))
	a.tokens = authn.Tokens(tokens...)
	configuration, jwks, err := serviceaccount.Discovery(o.issuers[0], o.keysURI(), keys)
	if err != nil {
		return err
	}
	a.keys = map[string]http.Handler{serviceaccount.ConfigurationPath: configuration, serviceaccount.JWKSPath: jwks}
	return nil
}

// keysURI is where the keys are found from outside: the flag's, or the address this server is reached at.
func (o *options) keysURI() string {
	if o.jwksURI != "" {
		return o.jwksURI
	}
	return "https://" + net.JoinHostPort(o.advertised().String(), strconv.Itoa(o.securePort)) + serviceaccount.JWKSPath
}

func verifyingKeys(o *options, signer crypto.Signer) ([]serviceaccount.PublicKey, error) {
	if len(o.accountKeys) > 0 {
		keys, err := serviceaccount.LoadPublicKeys(o.accountKeys...)
		if err != nil {
			return nil, fmt.Errorf("--service-account-key-file: %w", err)
		}
		return keys, nil
	}
	key, err := serviceaccount.NewPublicKey(signer.Public())
	if err != nil {
		return nil, fmt.Errorf("--service-account-signing-key-file: %w", err)
	}
	return []serviceaccount.PublicKey{key}, nil
}
