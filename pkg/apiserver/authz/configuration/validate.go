package configuration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/admissionregistration/expression"
)

// maxAuthorizers bounds the authorizers of a file.
const maxAuthorizers = 64

// validate checks a configuration and compiles its match conditions. The messages are Kubernetes'.
func validate(c *AuthorizationConfiguration) ([]Mode, error) {
	v := &validator{compiler: &expression.Compiler{}, types: sets.New[string](), names: sets.New[string]()}
	at := field.NewPath("authorizers")
	switch n := len(c.Authorizers); {
	case n == 0:
		return nil, field.Required(at, "at least one authorization mode must be defined")
	case n > maxAuthorizers:
		return nil, field.TooMany(at, n, maxAuthorizers)
	}
	modes := make([]Mode, len(c.Authorizers))
	for n := range c.Authorizers {
		modes[n] = v.authorizer(&c.Authorizers[n], at.Index(n))
	}
	if err := v.errs.ToAggregate(); err != nil {
		return nil, err
	}
	for _, m := range modes {
		if name := strings.ToLower(m.Type); m.Webhook == nil && m.Name != name {
			return nil, fmt.Errorf("expected name %s for authorizer %s instead of %s", name, m.Type, m.Name)
		}
	}
	return modes, nil
}

type validator struct {
	compiler     *expression.Compiler
	types, names sets.Set[string]
	errs         field.ErrorList
}

func (v *validator) fail(err *field.Error) { v.errs = append(v.errs, err) }

func (v *validator) authorizer(a *AuthorizerConfiguration, at *field.Path) Mode {
	m := Mode{Type: a.Type, Name: a.Name, Webhook: a.Webhook}
	switch kind := at.Child("type"); {
	case a.Type == "":
		v.fail(field.Required(kind, ""))
		return m
	case !slices.Contains(Types(), a.Type):
		v.fail(field.NotSupported(kind, a.Type, Types()))
		return m
	case a.Type != Webhook && v.types.Has(a.Type):
		v.fail(field.Duplicate(kind, a.Type))
		return m
	}
	v.types.Insert(a.Type)
	v.name(a.Name, at.Child("name"))
	if webhook := at.Child("webhook"); a.Type != Webhook {
		if a.Webhook != nil {
			v.fail(field.Invalid(webhook, "non-null", "may only be specified when type=Webhook"))
		}
		return m
	} else if a.Webhook == nil {
		v.fail(field.Required(webhook, "required when type=Webhook"))
		return m
	}
	m.Conditions = v.webhook(a.Webhook, at)
	return m
}

func (v *validator) name(name string, at *field.Path) {
	if name == "" {
		v.fail(field.Required(at, ""))
	} else if v.names.Has(name) {
		v.fail(field.Duplicate(at, name))
	} else if errs := utilvalidation.IsDNS1123Subdomain(name); len(errs) > 0 {
		v.fail(field.Invalid(at, name, "authorizer name is invalid: "+strings.Join(errs, ", ")))
	}
	v.names.Insert(name)
}

// webhook checks a webhook, whose fields upstream names as if they were the authorizer's.
func (v *validator) webhook(w *WebhookConfiguration, at *field.Path) []*expression.Program {
	timeout := at.Child("timeout")
	if d := w.Timeout.Duration; d == 0 {
		v.fail(field.Required(timeout, ""))
	} else if d < 0 || d > maxTimeout {
		v.fail(field.Invalid(timeout, d.String(), "must be > 0s and <= 30s"))
	}
	if d := w.AuthorizedTTL.Duration; d < 0 {
		v.fail(field.Invalid(at.Child("authorizedTTL"), d.String(), "must be > 0s"))
	}
	if d := w.UnauthorizedTTL.Duration; d < 0 {
		v.fail(field.Invalid(at.Child("unauthorizedTTL"), d.String(), "must be > 0s"))
	}
	v.oneOf(w.ReviewVersion, at.Child("subjectAccessReviewVersion"), "v1", "v1beta1")
	if conditions := at.Child("matchConditionSubjectAccessReviewVersion"); w.ConditionVersion != "" {
		v.oneOf(w.ConditionVersion, conditions, "v1")
	} else if len(w.MatchConditions) > 0 {
		v.fail(field.Required(conditions, "required if match conditions are specified"))
	}
	v.oneOf(w.FailurePolicy, at.Child("failurePolicy"), noOpinion, deny)
	v.connection(&w.ConnectionInfo, at.Child("connectionInfo"))
	return v.conditions(w.MatchConditions, at.Child("matchConditions"))
}

func (v *validator) oneOf(value string, at *field.Path, known ...string) {
	if value == "" {
		v.fail(field.Required(at, ""))
	} else if !slices.Contains(known, value) {
		v.fail(field.NotSupported(at, value, known))
	}
}

func (v *validator) connection(c *WebhookConnectionInfo, at *field.Path) {
	file := at.Child("kubeConfigFile")
	switch c.Type {
	case "":
		v.fail(field.Required(at.Child("type"), ""))
	case inClusterConfig:
		if c.KubeConfigFile != nil {
			v.fail(field.Invalid(file, *c.KubeConfigFile, "can only be set when type=KubeConfigFile"))
		}
	case kubeConfigFile:
		v.file(c.KubeConfigFile, file)
	default:
		shown := struct { // as upstream shows it
			Type           string
			KubeConfigFile *string
		}(*c)
		v.fail(field.NotSupported(at.Child("type"), shown, []string{inClusterConfig, kubeConfigFile}))
	}
}

func (v *validator) file(path *string, at *field.Path) {
	switch {
	case path == nil || *path == "":
		v.fail(field.Required(at, ""))
		return
	case !filepath.IsAbs(*path):
		v.fail(field.Invalid(at, *path, "must be an absolute path"))
		return
	}
	if info, err := os.Stat(*path); err != nil {
		v.fail(field.Invalid(at, *path, "error loading file: "+err.Error()))
	} else if !info.Mode().IsRegular() {
		v.fail(field.Invalid(at, *path, "must be a regular file"))
	}
}

func (v *validator) conditions(all []WebhookMatchCondition, at *field.Path) []*expression.Program {
	if len(all) > maxConditions {
		v.fail(field.TooMany(at, len(all), maxConditions))
		return nil
	}
	out, seen := make([]*expression.Program, len(all)), sets.New[string]()
	for n, c := range all {
		at := at.Index(n).Child("expression")
		switch {
		case strings.TrimSpace(c.Expression) == "":
			v.fail(field.Required(at, ""))
			continue
		case seen.Has(c.Expression):
			v.fail(field.Duplicate(at, c.Expression))
			continue
		}
		seen.Insert(c.Expression)
		p, err := v.compiler.Compile(c.Expression, expression.Scope{Review: true}, expression.Bool())
		if err != nil {
			v.fail(field.Invalid(at, c.Expression, err.Error()))
		}
		out[n] = p
	}
	return out
}
