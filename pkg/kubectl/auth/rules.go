package auth

import (
	"fmt"
	"io"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// ruleList is what the server answered, in the form of a role's rules.
func ruleList(s *authorizationv1.SubjectRulesReviewStatus) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, x := range s.ResourceRules {
		out = append(out, rbacv1.PolicyRule{Verbs: x.Verbs, APIGroups: x.APIGroups, Resources: x.Resources,
			ResourceNames: x.ResourceNames})
	}
	for _, x := range s.NonResourceRules {
		out = append(out, rbacv1.PolicyRule{Verbs: x.Verbs, NonResourceURLs: x.NonResourceURLs})
	}
	return out
}

// warnVerb says that a verb is none of those the API and its authorizers know, which the server answers all the same.
func warnVerb(w io.Writer, verb string, path bool) {
	known := []string{"*", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use",
		"bind", "impersonate", "escalate", "approve", "sign", "attest"}
	if path {
		known = []string{"*", "get", "put", "post", "head", "options", "delete", "patch"}
	}
	if !slices.Contains(known, verb) {
		fmt.Fprintf(w, "Warning: verb '%s' is not a known verb\n\n", verb)
	}
}
