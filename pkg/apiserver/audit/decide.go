package audit

import (
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"bonsai/pkg/apiserver/request"
)

// decision is what the policy wants to know about a request. It is computed once for a request, and holds for all its
// stages.
type decision struct {
	level auditv1.Level
	// The policy's and the rule's own, not copied into one list: a request must not allocate for it.
	omitStages        [2][]auditv1.Stage
	omitManagedFields bool
}

// omits tells that no event is made of a stage.
func (d *decision) omits(s auditv1.Stage) bool {
	return slices.Contains(d.omitStages[0], s) || slices.Contains(d.omitStages[1], s)
}

// decide finds the first rule that matches a request; without one it is not noted. user is nil if nobody knows who
// asks. The order of the rules is the administrator's: an early rule of level None hides requests that a later rule
// would note. The policy never changes while the server runs, so no lock is needed.
func (p *Policy) decide(user *request.User, info *request.Info) decision {
	for i := range p.Rules {
		r := &p.Rules[i]
		if !matches(r, user, info) {
			continue
		}
		d := decision{level: r.Level, omitStages: [2][]auditv1.Stage{p.OmitStages, r.OmitStages},
			omitManagedFields: p.OmitManagedFields}
		if r.OmitManagedFields != nil {
			d.omitManagedFields = *r.OmitManagedFields
		}
		return d
	}
	return decision{level: auditv1.LevelNone}
}

// matches reports whether a rule is for a request. All the conditions that a rule has must hold; an empty list is no
// condition. A rule without resources, namespaces and URLs is for requests of both kinds.
func matches(r *auditv1.PolicyRule, user *request.User, info *request.Info) bool {
	if len(r.Users) > 0 && (user == nil || !slices.Contains(r.Users, user.Name)) {
		return false
	}
	if len(r.UserGroups) > 0 && !slices.ContainsFunc(r.UserGroups, user.InGroup) {
		return false
	}
	if len(r.Verbs) > 0 && !slices.Contains(r.Verbs, info.Verb) {
		return false
	}
	switch {
	case len(r.Namespaces) > 0 || len(r.Resources) > 0:
		return info.IsResource && matchesResource(r, info)
	case len(r.NonResourceURLs) > 0:
		return !info.IsResource && slices.ContainsFunc(r.NonResourceURLs, func(url string) bool {
			return matchesPath(url, info.Path)
		})
	}
	return true
}

func matchesPath(url, path string) bool {
	if prefix, ok := strings.CutSuffix(url, "*"); ok {
		return strings.HasPrefix(path, prefix)
	}
	return url == path
}

// matchesResource applies the namespaces and resources of a rule. Requests for cluster-wide objects have the namespace
// "": a rule names them by the empty string. Within one group, an empty list of resources stands for all of them, and
// names are not looked at then; validation refuses such rules.
func matchesResource(r *auditv1.PolicyRule, info *request.Info) bool {
	if len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, info.Namespace) {
		return false
	}
	return len(r.Resources) == 0 || slices.ContainsFunc(r.Resources, func(g auditv1.GroupResources) bool {
		if g.Group != "*" && g.Group != info.APIGroup {
			return false
		}
		if len(g.Resources) == 0 {
			return true
		}
		if len(g.ResourceNames) > 0 && !slices.Contains(g.ResourceNames, info.Name) {
			return false
		}
		return slices.ContainsFunc(g.Resources, func(s string) bool { return names(s, info) })
	})
}

// names reports whether a rule's resource means what a request is about. As upstream, "pods/*" means pods themselves,
// too.
func names(s string, info *request.Info) bool {
	if s == "*" {
		return true
	}
	resource, sub, has := strings.Cut(s, "/")
	switch {
	case !has:
		return info.Subresource == "" && resource == info.Resource
	case resource == "*":
		return info.Subresource == sub
	case sub == "*":
		return resource == info.Resource
	}
	return resource == info.Resource && sub == info.Subresource
}
