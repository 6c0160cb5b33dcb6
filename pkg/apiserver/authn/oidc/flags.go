package oidc

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
)

// Flags are one issuer in the words of the --oidc-* flags.
type Flags struct {
	IssuerURL, ClientID, CAFile   string
	UsernameClaim, UsernamePrefix string
	GroupsClaim, GroupsPrefix     string
	SigningAlgs                   []string
	RequiredClaims                map[string]string
}

// Given reports whether a flag asks for something.
func (f *Flags) Given() bool {
	return f.IssuerURL != "" || f.ClientID != "" || f.CAFile != "" || f.UsernamePrefix != "" || f.GroupsClaim != "" ||
		f.GroupsPrefix != "" || len(f.RequiredClaims) > 0 || f.UsernameClaim != "sub" ||
		!slices.Equal(f.SigningAlgs, []string{"RS256"})
}

// Validate says what is wrong with the flags.
func (f *Flags) Validate() error {
	if !f.Given() {
		return nil
	}
	if f.IssuerURL == "" || f.ClientID == "" {
		return errors.New("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set")
	}
	for _, a := range f.SigningAlgs {
		if !slices.Contains(algorithms(), a) {
			return fmt.Errorf("oidc-signing-algs: unsupported signing alg: %q", a)
		}
	}
	return nil
}

// configuration is what the flags say in the words of the file. A username that is not an e-mail address gets the
// issuer as its prefix, unless the flags name another; "-" is none.
func (f *Flags) configuration() (*Configuration, error) {
	j := JWT{Issuer: Issuer{URL: f.IssuerURL, Audiences: []string{f.ClientID}}, algorithms: f.SigningAlgs}
	if f.CAFile != "" {
		text, err := os.ReadFile(f.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--oidc-ca-file: %w", err)
		}
		j.Issuer.CertificateAuthority = string(text)
	}
	prefix := f.UsernamePrefix
	switch {
	case prefix == "-":
		prefix = ""
	case prefix == "" && f.UsernameClaim != "email":
		prefix = f.IssuerURL + "#"
	}
	j.ClaimMappings.Username = PrefixedClaimOrExpression{Claim: f.UsernameClaim, Prefix: &prefix}
	if f.GroupsClaim != "" {
		j.ClaimMappings.Groups = PrefixedClaimOrExpression{Claim: f.GroupsClaim, Prefix: &f.GroupsPrefix}
	}
	for _, name := range slices.Sorted(maps.Keys(f.RequiredClaims)) {
		j.ClaimValidationRules = append(j.ClaimValidationRules,
			ClaimValidationRule{Claim: name, RequiredValue: f.RequiredClaims[name]})
	}
	return &Configuration{JWT: []JWT{j}}, nil
}
