// Package abac authorizes by the policies of a file (--authorization-policy-file), one JSON object a line, in
// Kubernetes' format: abac.authorization.kubernetes.io/v1beta1, or lines without a version as they once were.
package abac

import (
	"context"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

// all is a pattern that every value matches.
const all = "*"

// policy is one line. A field that is "" matches nothing, except that one of user and group may be missing.
type policy struct {
	User            string `json:"user"`
	Group           string `json:"group"`
	Readonly        bool   `json:"readonly"`
	APIGroup        string `json:"apiGroup"`
	Resource        string `json:"resource"`
	Namespace       string `json:"namespace"`
	NonResourcePath string `json:"nonResourcePath"`
}

// Authorizer is the mode ABAC. It never denies.
type Authorizer struct{ policies []policy }

var (
	_ authz.Authorizer = (*Authorizer)(nil)
	_ authz.Lister     = (*Authorizer)(nil)
)

// Authorize implements authz.Authorizer.
func (a *Authorizer) Authorize(_ context.Context, at authz.Attributes) (authz.Decision, string, error) {
	for i := range a.policies {
		if p := &a.policies[i]; p.concerns(at.User) && p.allows(&at) {
			return authz.Allow, "", nil
		}
	}
	return authz.NoOpinion, "No policy matched.", nil
}

// concerns reports whether the policy is one of the user: both its user and its group must match, if it has both.
func (p *policy) concerns(u *request.User) bool {
	if u == nil || p.User == "" && p.Group == "" {
		return false
	}
	return (p.User == "" || p.User == all || p.User == u.Name) &&
		(p.Group == "" || p.Group == all || u.InGroup(p.Group))
}

func (p *policy) allows(at *authz.Attributes) bool {
	if p.Readonly && !slices.Contains(reading(), at.Verb) {
		return false
	}
	if !at.IsResource {
		prefix, rest := strings.CutSuffix(p.NonResourcePath, all)
		return p.NonResourcePath == at.Path || rest && strings.HasPrefix(at.Path, prefix)
	}
	return matches(p.Namespace, at.Namespace) && matches(p.Resource, at.Resource) && matches(p.APIGroup, at.APIGroup)
}

// matches: the empty value of a request is that of the core group, or of the cluster, and an empty pattern matches it.
func matches(pattern, value string) bool { return pattern == all || pattern == value }

func reading() []string { return []string{"get", "list", "watch"} }

// ReviewRules implements authz.Lister.
func (a *Authorizer) ReviewRules(_ context.Context, user *request.User,
	namespace string) authorizationv1.SubjectRulesReviewStatus {
	var s authorizationv1.SubjectRulesReviewStatus
	for i := range a.policies {
		p := &a.policies[i]
		if !p.concerns(user) || !matches(p.Namespace, namespace) {
			continue
		}
		verbs := []string{all}
		if p.Readonly {
			verbs = reading()
		}
		if p.Resource != "" {
			s.ResourceRules = append(s.ResourceRules, authorizationv1.ResourceRule{Verbs: verbs,
				APIGroups: []string{p.APIGroup}, Resources: []string{p.Resource}})
		}
		if p.NonResourcePath != "" {
			s.NonResourceRules = append(s.NonResourceRules, authorizationv1.NonResourceRule{Verbs: verbs,
				NonResourceURLs: []string{p.NonResourcePath}})
		}
	}
	return s
}
