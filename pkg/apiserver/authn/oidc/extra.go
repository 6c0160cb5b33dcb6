package oidc

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/admissionregistration/expression"
)

// extra checks the mappings of the user's extra.
func (v *validator) extra(all []ExtraMapping, r *rules, at *field.Path) {
	seen := sets.New[string]()
	r.extra = make([]*expression.Program, len(all))
	for n, m := range all {
		key, value := at.Index(n).Child("key"), at.Index(n).Child("valueExpression")
		if m.Key == "" {
			v.fail(field.Required(key, ""))
		} else {
			v.extraKey(m.Key, key)
			if seen.Has(m.Key) {
				v.fail(field.Duplicate(key, m.Key))
			}
			seen.Insert(m.Key)
		}
		if m.ValueExpression == "" {
			v.fail(field.Required(value, ""))
			continue
		}
		r.extra[n] = v.compile(m.ValueExpression, ofClaims(), value, expression.Any())
	}
}

// extraKey: keys are Kubernetes' own only where Kubernetes says it.
func (v *validator) extraKey(key string, at *field.Path) {
	v.errs = append(v.errs, validation.IsDomainPrefixedPath(at, key)...)
	if key != strings.ToLower(key) {
		v.fail(field.Invalid(at, key, "must be lowercase"))
	}
	domain, _, _ := strings.Cut(key, "/")
	for _, reserved := range []string{"k8s.io", "kubernetes.io"} {
		if domain == reserved || strings.HasSuffix(domain, "."+reserved) {
			v.fail(field.Invalid(at, key, "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"))
		}
	}
}

// emails: who makes a name of an e-mail address must also look whether it is verified.
func (v *validator) emails(j *JWT, r *rules, at *field.Path) {
	if r.username == nil || !r.username.NamesClaim("email") {
		return
	}
	for _, programs := range [][]*expression.Program{{r.username}, r.extra, r.claims} {
		for _, p := range programs {
			if p != nil && p.NamesClaim("email_verified") {
				return
			}
		}
	}
	v.fail(field.Invalid(at, j.ClaimMappings.Username.Expression,
		"claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression"))
}
