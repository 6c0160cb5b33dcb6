package policies

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/catalog"
)

// criteria are what a policy or a binding says of the requests that it is about.
type criteria struct {
	selectors       match.Selectors
	rules, excluded []admissionregistrationv1.NamedRuleWithOperations
	policy          *admissionregistrationv1.MatchPolicyType
}

// newCriteria reads them; nil are those that all requests meet.
func newCriteria(m *admissionregistrationv1.MatchResources) criteria {
	if m == nil {
		m = &admissionregistrationv1.MatchResources{}
	}
	return criteria{selectors: match.NewSelectors(m.NamespaceSelector, m.ObjectSelector), rules: m.ResourceRules,
		excluded: m.ExcludeResourceRules, policy: m.MatchPolicy}
}

// matched are the rules that match a request, except the names of objects that they may be restricted to.
type matched struct {
	rules, excluded []match.Match
}

// about reports whether the rules can match a request, whatever its name.
func (c *criteria) about(served *catalog.Snapshot, q *match.Question) (matched, bool) {
	find := func(rules []admissionregistrationv1.NamedRuleWithOperations) []match.Match {
		return q.Matches(served, len(rules), func(i int) *admissionregistrationv1.RuleWithOperations {
			return &rules[i].RuleWithOperations
		}, c.policy)
	}
	out := matched{excluded: find(c.excluded)}
	if slices.ContainsFunc(out.excluded, func(m match.Match) bool {
		return len(c.excluded[m.Rule].ResourceNames) == 0
	}) {
		return matched{}, false
	}
	if len(c.rules) == 0 { // of a binding: they do not restrict it
		out.rules = []match.Match{{Rule: -1, Target: q.Requested()}}
		return out, true
	}
	out.rules = find(c.rules)
	return out, len(out.rules) > 0
}

// meets reports whether a request with a name meets c, whose rules match it otherwise, and in which version. Its
// selectors are asked first: a namespace that cannot be read is no error to a policy that is not about the request.
func (c *criteria) meets(ctx context.Context, r *match.Request, m *matched, name string) (target match.Target,
	meets bool, err error) {
	selected, err := r.Selects(ctx, &c.selectors)
	if err == nil && !selected {
		return target, false, nil
	}
	for _, x := range m.excluded {
		if slices.Contains(c.excluded[x.Rule].ResourceNames, name) {
			return target, false, nil
		}
	}
	for _, x := range m.rules {
		if x.Rule < 0 || len(c.rules[x.Rule].ResourceNames) == 0 ||
			slices.Contains(c.rules[x.Rule].ResourceNames, name) {
			return x.Target, err == nil, err
		}
	}
	return target, false, nil
}
