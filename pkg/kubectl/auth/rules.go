package auth

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// listed are the rules as can-i --list shows them: one for each resource, object name and path, the verbs of one resource and
// name together. They are ordered as text: verbs, groups, resources, names, paths.
func listed(s *authorizationv1.SubjectRulesReviewStatus) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, x := range s.ResourceRules {
		names := [][]string{nil}
		if len(x.ResourceNames) > 0 {
			names = slices.Collect(slices.Chunk(x.ResourceNames, 1))
		}
		for _, g := range x.APIGroups {
			for _, r := range x.Resources {
				for _, n := range names {
					out = withRule(out, rbacv1.PolicyRule{APIGroups: []string{g}, Resources: []string{r}, ResourceNames: n, Verbs: slices.Clone(x.Verbs)})
				}
			}
		}
	}
	for _, x := range s.NonResourceRules {
		for _, u := range x.NonResourceURLs {
			out = append(out, rbacv1.PolicyRule{NonResourceURLs: []string{u}, Verbs: x.Verbs})
		}
	}
	slices.SortStableFunc(out, func(a, b rbacv1.PolicyRule) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// withRule adds the rule, or its verbs to those of the same resource and name.
func withRule(rules []rbacv1.PolicyRule, rule rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for i := range rules {
		old := &rules[i]
		if !slices.Equal(old.APIGroups, rule.APIGroups) || !slices.Equal(old.Resources, rule.Resources) || !slices.Equal(old.ResourceNames, rule.ResourceNames) {
			continue
		}
		for _, v := range rule.Verbs {
			if !slices.Contains(old.Verbs, v) {
				old.Verbs = append(old.Verbs, v)
			}
		}
		return rules
	}
	return append(rules, rule)
}

// warnVerb says that a verb is none of those the API and its authorizers know, which the server answers all the same.
func warnVerb(w io.Writer, verb string, path bool) {
	known := []string{"*", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "bind", "impersonate", "escalate", "approve", "sign", "attest"}
	if path {
		known = []string{"*", "get", "put", "post", "head", "options", "delete", "patch"}
	}
	if !slices.Contains(known, verb) {
		fmt.Fprintf(w, "Warning: verb '%s' is not a known verb\n\n", verb)
	}
}
