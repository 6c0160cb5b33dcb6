package authz

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// RuleAllows reports whether one policy rule allows a. It is pure. The RBAC authorizer calls it for each rule of the
// user until one allows. An empty list in a rule matches nothing, with one exception: no resourceNames means every
// name. A rule with names allows no request without a name, such as a create.
func RuleAllows(r *rbacv1.PolicyRule, a *Attributes) bool {
	if !contains(r.Verbs, a.Verb, rbacv1.VerbAll) {
		return false
	}
	if !a.IsResource {
		return matchesPath(r.NonResourceURLs, a.Path)
	}
	return contains(r.APIGroups, a.APIGroup, rbacv1.APIGroupAll) &&
		matchesResource(r.Resources, a.Resource, a.Subresource) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name))
}
func contains(list []string, s, all string) bool {
	for _, x := range list {
		if x == s || x == all {
			return true
		}
	}
	return false
}

// matchesResource: "*" is everything, "pods/log" a subresource, "*/scale" that subresource of every resource.
func matchesResource(list []string, resource, sub string) bool {
	for _, x := range list {
		if x == rbacv1.ResourceAll {
			return true
		}
		if sub == "" {
			if x == resource {
				return true
			}
			continue
		}
		if r, s, ok := strings.Cut(x, "/"); ok && s == sub && (r == "*" || r == resource) {
			return true
		}
	}
	return false
}

// matchesPath: a final "*" stands for any rest. A "*" elsewhere in the path is an ordinary character.
func matchesPath(list []string, path string) bool {
	for _, x := range list {
		if x == rbacv1.NonResourceAll || x == path {
			return true
		}
		if prefix, ok := strings.CutSuffix(x, "*"); ok && strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
