package match

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/catalog"
)

// Question is what rules decide on. It is comparable: there are as many as there are resources, subresources and
// operations.
type Question struct {
	resource, requested schema.GroupVersionResource
	kind, requestedKind schema.GroupVersionKind
	subresource         string
	operation           admission.Operation
	scope               admissionregistrationv1.ScopeType
}

// Target is the version in which a webhook or a policy wants the object.
type Target struct {
	Kind     schema.GroupVersionKind
	Resource schema.GroupVersionResource
}

// Ask makes the question of a request.
func Ask(a *admission.Attributes) Question {
	q := Question{resource: a.Resource, requested: a.RequestResource, kind: a.Kind, requestedKind: a.RequestKind,
		subresource: a.Subresource, operation: a.Operation, scope: scopeOf(a)}
	if q.requested.Empty() {
		q.requested, q.requestedKind = q.resource, q.kind
	}
	return q
}

// Requested is the version that the client asked for.
func (q *Question) Requested() Target { return Target{q.requestedKind, q.requested} }

// scopeOf: a request about a Namespace itself has its name as namespace, and is cluster-wide all the same.
func scopeOf(a *admission.Attributes) admissionregistrationv1.ScopeType {
	if a.Namespace == "" || aboutNamespace(a) {
		return admissionregistrationv1.ClusterScope
	}
	return admissionregistrationv1.NamespacedScope
}

func aboutNamespace(a *admission.Attributes) bool {
	return a.Resource.Group == "" && a.Resource.Resource == "namespaces"
}

// Match is a rule, by its index, that matches a question, and in which version.
type Match struct {
	Rule int
	Target
}

// Matches asks the rules about the resource as the client asked for it, and then, unless they are meant exactly, about
// the other versions and groups in which the same objects are served. The first match counts; who restricts rules
// further looks at the next. rule returns one of n rules.
func (q *Question) Matches(served *catalog.Snapshot, n int, rule func(int) *admissionregistrationv1.RuleWithOperations,
	policy *admissionregistrationv1.MatchPolicyType) []Match {
	out := q.matched(nil, q.Requested(), n, rule)
	if policy != nil && *policy == admissionregistrationv1.Exact {
		return out
	}
	asked := served.Resource(q.requested.GroupResource())
	if asked == nil {
		return out
	}
	for _, r := range served.Resources() {
		if r != asked && (asked.Row.StoragePath == "" || r.Row.StoragePath != asked.Row.StoragePath) {
			continue
		}
		for _, route := range r.Routes() {
			gvr := route.GVR()
			if gvr == q.requested {
				continue
			}
			kind := route.GVK
			if sub := r.Subresource(q.subresource); sub != nil && sub.GVK != nil {
				kind = *sub.GVK
			}
			out = q.matched(out, Target{kind, gvr}, n, rule)
		}
	}
	return out
}

// matched appends those of n rules that match a version.
func (q *Question) matched(to []Match, in Target, n int,
	rule func(int) *admissionregistrationv1.RuleWithOperations) []Match {
	for i := range n {
		if q.concerned(in.Resource, rule(i)) {
			to = append(to, Match{i, in})
		}
	}
	return to
}

// concerned reports whether a rule matches.
func (q *Question) concerned(gvr schema.GroupVersionResource, r *admissionregistrationv1.RuleWithOperations) bool {
	return (r.Scope == nil || *r.Scope == admissionregistrationv1.AllScopes || *r.Scope == q.scope) &&
		(slices.Contains(r.Operations, admissionregistrationv1.OperationAll) ||
			slices.Contains(r.Operations, admissionregistrationv1.OperationType(q.operation))) &&
		has(r.APIGroups, gvr.Group) && has(r.APIVersions, gvr.Version) &&
		slices.ContainsFunc(r.Resources, func(name string) bool {
			resource, sub, _ := strings.Cut(name, "/")
			return (resource == "*" || resource == gvr.Resource) && (sub == "*" || sub == q.subresource)
		})
}

func has(list []string, s string) bool { return slices.Contains(list, "*") || slices.Contains(list, s) }
