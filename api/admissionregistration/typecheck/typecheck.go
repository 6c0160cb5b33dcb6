// Package typecheck looks for mistakes in the expressions of validating admission policies that only show when the
// kinds are known that the policies are about: fields that do not exist, and values of another type than they are
// compared with.
package typecheck

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiservercel "k8s.io/apiserver/pkg/cel"
	celopenapi "k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"bonsai/api/admissionregistration/expression"
)

// maxTypes is how many kinds a policy is checked against, as upstream.
const maxTypes = 10

// Served is what an API server serves.
type Served interface {
	// Kinds are those of a resource in a version; an empty group is any group, as upstream.
	Kinds(schema.GroupVersionResource) []schema.GroupVersionKind
	// Schemas are the schemas of a group version by name; each names its kinds in x-kubernetes-group-version-kind. Nil:
	// it is not served.
	Schemas(schema.GroupVersion) (map[string]*spec.Schema, error)
}

// Check returns a warning for each expression of p's validations that is wrong for one of its kinds. An error is of
// served.
func Check(p *admissionregistrationv1.ValidatingAdmissionPolicy,
	served Served) ([]admissionregistrationv1.ExpressionWarning, error) {
	kinds := kindsOf(p.Spec.MatchConstraints, served)
	var param *apiservercel.DeclType
	if k := p.Spec.ParamKind; k != nil {
		var err error
		if param, err = declare(schema.FromAPIVersionAndKind(k.APIVersion, k.Kind), "Params", served); err != nil {
			return nil, err
		}
	}
	found := make([]map[string]string, 2*len(p.Spec.Validations)) // of each expression: kind → text
	for _, kind := range kinds {
		object, err := declare(kind, "Object", served)
		if err != nil {
			return nil, err
		}
		if object == nil { // nothing is known of it
			continue
		}
		for i, text := range issues(p, object, param) {
			if text == "" {
				continue
			}
			if found[i] == nil {
				found[i] = map[string]string{}
			}
			found[i][kind.String()] = text
		}
	}
	var out []admissionregistrationv1.ExpressionWarning
	for i, texts := range found {
		if len(texts) == 0 {
			continue
		}
		var lines []string
		for _, kind := range slices.Sorted(maps.Keys(texts)) {
			lines = append(lines, fmt.Sprintf("%s: %s\n", kind, texts[kind]))
		}
		name := []string{"expression", "messageExpression"}[i%2]
		out = append(out, admissionregistrationv1.ExpressionWarning{
			FieldRef: fmt.Sprintf("spec.validations[%d].%s", i/2, name), Warning: strings.Join(lines, "\n")})
	}
	return out, nil
}

// issues are what is wrong with each validation's expression and message expression, by turns, for one kind.
func issues(p *admissionregistrationv1.ValidatingAdmissionPolicy, object, param *apiservercel.DeclType) []string {
	with := &expression.Compiler{Object: object, Params: param}
	in := expression.Scope{Params: p.Spec.ParamKind != nil, Authorizer: true}
	composed := with.Compose()
	for _, v := range p.Spec.Variables {
		// What is wrong with a variable shows where it is used.
		composed.Add(v.Name, v.Expression, in) //nolint:errcheck // see above
	}
	out := make([]string, 0, 2*len(p.Spec.Validations))
	for _, v := range p.Spec.Validations {
		for _, text := range []string{v.Expression, v.MessageExpression} {
			out = append(out, issue(composed, text, in))
		}
	}
	return out
}

func issue(composed *expression.Composition, text string, in expression.Scope) string {
	if text == "" {
		return ""
	}
	var wrong *expression.SyntaxError
	if _, err := composed.Compile(text, in, cel.AnyType); errors.As(err, &wrong) {
		return wrong.Issues
	}
	return ""
}

// kindsOf are the kinds that constraints name, without wildcards and subresources, in the order of the rules, and
// within one of groups, versions and resources.
func kindsOf(m *admissionregistrationv1.MatchResources, served Served) []schema.GroupVersionKind {
	if m == nil {
		return nil
	}
	var out []schema.GroupVersionKind
	for i := range m.ResourceRules {
		r := &m.ResourceRules[i]
		for _, group := range named(r.APIGroups) {
			for _, version := range named(r.APIVersions) {
				for _, resource := range named(r.Resources) {
					for _, kind := range served.Kinds(
						schema.GroupVersionResource{Group: group, Version: version, Resource: resource}) {
						if slices.Contains(out, kind) {
							continue
						}
						if out = append(out, kind); len(out) == maxTypes {
							return out
						}
					}
				}
			}
		}
	}
	return out
}

// named are the words of a list, sorted, if there is no wildcard or subresource among them.
func named(list []string) []string {
	if slices.ContainsFunc(list, func(s string) bool { return strings.ContainsAny(s, "*/") }) {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// declare makes a type of a kind's schema, with a name; nil if nothing is known of it.
func declare(kind schema.GroupVersionKind, name string, served Served) (*apiservercel.DeclType, error) {
	all, err := served.Schemas(kind.GroupVersion())
	if err != nil || all == nil {
		return nil, err
	}
	root := ""
	for key, s := range all {
		if isOf(s, kind) {
			root = key
		}
	}
	if root == "" {
		return nil, nil
	}
	whole, err := (&refs{schemas: all, open: map[string]bool{}}).inline(all[root])
	if err != nil {
		return nil, nil //nolint:nilerr // a schema that refers to what is not there says nothing
	}
	t := celopenapi.SchemaDeclType(whole, true)
	if t == nil {
		return nil, nil
	}
	return t.MaybeAssignTypeName(name), nil
}

// isOf reports whether a schema is a kind's.
func isOf(s *spec.Schema, kind schema.GroupVersionKind) bool {
	var names []struct{ Group, Version, Kind string }
	if err := s.Extensions.GetObject("x-kubernetes-group-version-kind", &names); err != nil {
		return false
	}
	return slices.ContainsFunc(names, func(n struct{ Group, Version, Kind string }) bool {
		return schema.GroupVersionKind(n) == kind
	})
}
