package oidc

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/admissionregistration/expression"
	"bonsai/pkg/safetext"
)

// maxIssuers bounds the issuers of a file.
const maxIssuers = 64

// validate checks a configuration and compiles its expressions, in the order of its issuers. The messages are
// Kubernetes'.
func validate(c *Configuration, accountIssuers []string) ([]*rules, field.ErrorList) {
	v := &validator{compiler: &expression.Compiler{}, disallowed: accountIssuers, issuers: sets.New[string](),
		discoveries: sets.New[string]()}
	jwt := field.NewPath("jwt")
	if len(c.JWT) > maxIssuers {
		v.errs = append(v.errs, field.TooMany(jwt, len(c.JWT), maxIssuers))
		return nil, v.errs
	}
	out := make([]*rules, len(c.JWT))
	for n := range c.JWT {
		out[n] = v.jwt(&c.JWT[n], jwt.Index(n))
	}
	if a := c.Anonymous; a != nil {
		v.anonymous(a, field.NewPath("anonymous"))
	}
	return out, v.errs
}

type validator struct {
	compiler             *expression.Compiler
	disallowed           []string
	issuers, discoveries sets.Set[string]
	errs                 field.ErrorList
}

func (v *validator) fail(err *field.Error) { v.errs = append(v.errs, err) }

func (v *validator) anonymous(a *Anonymous, at *field.Path) {
	if !a.Enabled && len(a.Conditions) > 0 {
		var shown []struct{ Path string } // as upstream shows them
		for _, c := range a.Conditions {
			shown = append(shown, struct{ Path string }(c))
		}
		v.fail(field.Invalid(at.Child("conditions"), shown,
			"enabled should be set to true when conditions are defined"))
	}
	for n, c := range a.Conditions {
		if c.Path == "" {
			v.fail(field.Required(at.Child("conditions").Index(n).Child("path"), ""))
		}
	}
}

func (v *validator) jwt(j *JWT, at *field.Path) *rules {
	v.issuer(&j.Issuer, at.Child("issuer"))
	r := &rules{}
	v.claimRules(j, r, at.Child("claimValidationRules"))
	v.mappings(&j.ClaimMappings, r, at.Child("claimMappings"))
	v.emails(j, r, at.Child("claimMappings", "username", "expression"))
	v.userRules(j, r, at.Child("userValidationRules"))
	return r
}

func (v *validator) issuer(i *Issuer, at *field.Path) {
	v.url(i.URL, at.Child("url"))
	if v.issuers.Has(i.URL) {
		v.fail(field.Duplicate(at.Child("url"), safetext.URL(i.URL)))
	}
	v.issuers.Insert(i.URL)
	if i.DiscoveryURL != "" {
		at := at.Child("discoveryURL")
		if strings.TrimSuffix(i.URL, "/") == strings.TrimSuffix(i.DiscoveryURL, "/") {
			v.fail(field.Invalid(at, safetext.URL(i.DiscoveryURL), "discoveryURL must be different from URL"))
		}
		v.https(i.DiscoveryURL, at)
		if v.discoveries.Has(i.DiscoveryURL) {
			v.fail(field.Duplicate(at, safetext.URL(i.DiscoveryURL)))
		}
		v.discoveries.Insert(i.DiscoveryURL)
	}
	v.audiences(i, at)
	if kind := i.EgressSelectorType; kind != "" && kind != "cluster" && kind != "controlplane" {
		v.fail(field.Invalid(at.Child("egressSelectorType"), kind,
			"egress selector must be either controlplane or cluster"))
	}
	if ca := i.CertificateAuthority; ca != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(ca)) {
		v.fail(field.Invalid(at.Child("certificateAuthority"), "<omitted>",
			"data does not contain any valid RSA or ECDSA certificates"))
	}
}

func (v *validator) url(text string, at *field.Path) {
	if text == "" {
		v.fail(field.Required(at, ""))
		return
	}
	if slices.Contains(v.disallowed, text) {
		v.fail(field.Invalid(at, safetext.URL(text), "URL must not overlap with disallowed issuers: "+
			safetext.URLs("["+strings.Join(slices.Sorted(slices.Values(v.disallowed)), " ")+"]")))
	}
	v.https(text, at)
}

// https checks a URL whose documents say which tokens are believed.
func (v *validator) https(text string, at *field.Path) {
	u, err := safetext.ParseURL(text)
	if err != nil {
		v.fail(field.Invalid(at, safetext.URL(text), err.Error()))
		return
	}
	for _, c := range []struct {
		wrong   bool
		message string
	}{
		{u.Scheme != "https", "URL scheme must be https"},
		{u.User != nil, "URL must not contain a username or password"},
		{u.RawQuery != "", "URL must not contain a query"},
		{u.Fragment != "", "URL must not contain a fragment"},
	} {
		if c.wrong {
			v.fail(field.Invalid(at, safetext.URL(text), c.message))
		}
	}
}

func (v *validator) audiences(i *Issuer, at *field.Path) {
	all := at.Child("audiences")
	if len(i.Audiences) == 0 {
		v.fail(field.Required(all, "at least one "+all.String()+" is required"))
		return
	}
	seen := sets.New[string]()
	for n, a := range i.Audiences {
		if a == "" {
			v.fail(field.Required(all.Index(n), ""))
		}
		if seen.Has(a) {
			v.fail(field.Duplicate(all.Index(n), a))
		}
		seen.Insert(a)
	}
	policy := at.Child("audienceMatchPolicy")
	if len(i.Audiences) > 1 && i.AudienceMatchPolicy != matchAny {
		v.fail(field.Invalid(policy, i.AudienceMatchPolicy,
			"audienceMatchPolicy must be MatchAny for multiple audiences"))
	}
	if len(i.Audiences) == 1 && i.AudienceMatchPolicy != "" && i.AudienceMatchPolicy != matchAny {
		v.fail(field.Invalid(policy, i.AudienceMatchPolicy,
			"audienceMatchPolicy must be empty or MatchAny for single audience"))
	}
}

// isSyntax reports whether an expression could not be read at all.
func isSyntax(err error) bool {
	var syntax *expression.SyntaxError
	return errors.As(err, &syntax)
}

func (v *validator) compile(text string, in expression.Scope, at *field.Path, want *cel.Type) *expression.Program {
	p, err := v.compiler.Compile(text, in, want)
	if _, got, ok := strings.Cut(fmt.Sprint(err), " but got "); ok && !isSyntax(err) {
		err = errors.New(strings.TrimSuffix(err.Error(), " but got "+got))
	}
	if err != nil {
		v.fail(field.Invalid(at, text, err.Error()))
		return nil
	}
	return p
}

// ofClaims and ofUser are where expressions are evaluated.
func ofClaims() expression.Scope { return expression.Scope{Claims: true} }
func ofUser() expression.Scope   { return expression.Scope{User: true} }

func (v *validator) claimRules(j *JWT, r *rules, at *field.Path) {
	claims, expressions := sets.New[string](), sets.New[string]()
	r.claims = make([]*expression.Program, len(j.ClaimValidationRules))
	for n, rule := range j.ClaimValidationRules {
		at := at.Index(n)
		switch {
		case rule.Claim == "" && rule.Expression == "":
			v.fail(field.Required(at, "claim or expression is required"))
		case rule.Claim != "" && rule.Expression != "":
			v.fail(field.Invalid(at, rule.Claim, "claim and expression can't both be set"))
		case rule.Claim != "":
			if rule.Message != "" {
				v.fail(field.Invalid(at.Child("message"), rule.Message, "may not be specified when claim is set"))
			}
			if claims.Has(rule.Claim) {
				v.fail(field.Duplicate(at.Child("claim"), rule.Claim))
			}
			claims.Insert(rule.Claim)
		default:
			if rule.RequiredValue != "" {
				v.fail(field.Invalid(at.Child("requiredValue"), rule.RequiredValue,
					"may not be specified when expression is set"))
			}
			if expressions.Has(rule.Expression) {
				v.fail(field.Duplicate(at.Child("expression"), rule.Expression))
				continue
			}
			expressions.Insert(rule.Expression)
			r.claims[n] = v.compile(rule.Expression, ofClaims(), at.Child("expression"), expression.Bool())
		}
	}
}

func (v *validator) mappings(m *ClaimMappings, r *rules, at *field.Path) {
	r.username = v.prefixed(&m.Username, true, at.Child("username"))
	r.groups = v.prefixed(&m.Groups, false, at.Child("groups"))
	if uid := at.Child("uid"); m.UID.Claim != "" && m.UID.Expression != "" {
		v.fail(field.Invalid(uid, "", "claim and expression can't both be set"))
	} else if m.UID.Expression != "" {
		r.uid = v.compile(m.UID.Expression, ofClaims(), uid.Child("expression"), expression.Any())
	}
	v.extra(m.Extra, r, at.Child("extra"))
}

func (v *validator) prefixed(m *PrefixedClaimOrExpression, required bool, at *field.Path) *expression.Program {
	switch {
	case m.Claim != "" && m.Expression != "":
		v.fail(field.Invalid(at, "", "claim and expression can't both be set"))
	case m.Claim == "" && m.Expression == "":
		if required {
			v.fail(field.Required(at, "claim or expression is required"))
		}
	case m.Expression != "":
		if m.Prefix != nil {
			v.fail(field.Invalid(at.Child("prefix"), *m.Prefix, "may not be specified when expression is set"))
		}
		return v.compile(m.Expression, ofClaims(), at.Child("expression"), expression.Any())
	case m.Prefix == nil:
		v.fail(field.Required(at.Child("prefix"),
			"prefix is required when claim is set. It can be set to an empty string to disable prefixing"))
	}
	return nil
}

func (v *validator) userRules(j *JWT, r *rules, at *field.Path) {
	seen := sets.New[string]()
	r.users = make([]*expression.Program, len(j.UserValidationRules))
	for n, rule := range j.UserValidationRules {
		at := at.Index(n).Child("expression")
		switch {
		case rule.Expression == "":
			v.fail(field.Required(at, ""))
		case seen.Has(rule.Expression):
			v.fail(field.Duplicate(at, rule.Expression))
		default:
			seen.Insert(rule.Expression)
			r.users[n] = v.compile(rule.Expression, ofUser(), at, expression.Bool())
		}
	}
}
