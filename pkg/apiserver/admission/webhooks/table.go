package webhooks

import (
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/catalog"
)

// table are the webhooks of one moment, and which of them which requests concern.
type table struct {
	hooks []*hook  // in the order they are asked
	found sync.Map // question → *answer; as many as there are resources, subresources and operations
}

// question is what rules decide on.
type question struct {
	resource, requested schema.GroupVersionResource
	kind, requestedKind schema.GroupVersionKind
	subresource         string
	operation           admission.Operation
	scope               admissionregistrationv1.ScopeType
}

// answer is good for one state of the catalog.
type answer struct {
	generation uint64
	candidates []candidate
}

// candidate is a webhook whose rules match a request, and the version in which it wants the object.
type candidate struct {
	*hook
	kind     schema.GroupVersionKind
	resource schema.GroupVersionResource
}

// candidates are the webhooks whose rules match the request, in order.
func (t *table) candidates(served *catalog.Snapshot, a *admission.Attributes) []candidate {
	if len(t.hooks) == 0 {
		return nil
	}
	q := question{resource: a.Resource, requested: a.RequestResource, kind: a.Kind, requestedKind: a.RequestKind, subresource: a.Subresource, operation: a.Operation, scope: scopeOf(a)}
	if q.requested.Empty() {
		q.requested, q.requestedKind = q.resource, q.kind
	}
	if have, ok := t.found.Load(q); ok && have.(*answer).generation == served.Generation() {
		return have.(*answer).candidates
	}
	out := &answer{generation: served.Generation()}
	for _, h := range t.hooks {
		if c := h.matches(served, &q); c.hook != nil {
			out.candidates = append(out.candidates, c)
		}
	}
	t.found.Store(q, out)
	return out.candidates
}

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

// matches asks the rules about the resource as the client asked for it, and then, unless they are meant exactly, about the other
// versions and groups in which the same objects are served.
func (h *hook) matches(served *catalog.Snapshot, q *question) candidate {
	if h.concerned(q.requested, q) {
		return candidate{h, q.requestedKind, q.requested}
	}
	if h.MatchPolicy != nil && *h.MatchPolicy == admissionregistrationv1.Exact {
		return candidate{}
	}
	asked := served.Resource(q.requested.GroupResource())
	if asked == nil {
		return candidate{}
	}
	for _, r := range served.Resources() {
		if r != asked && (asked.Row.StoragePath == "" || r.Row.StoragePath != asked.Row.StoragePath) {
			continue
		}
		for _, route := range r.Routes() {
			gvr := route.GVR()
			if gvr == q.requested || !h.concerned(gvr, q) {
				continue
			}
			kind := route.GVK
			if sub := r.Subresource(q.subresource); sub != nil && sub.GVK != nil {
				kind = *sub.GVK
			}
			return candidate{h, kind, gvr}
		}
	}
	return candidate{}
}

// concerned tells whether one of the rules matches.
func (h *hook) concerned(gvr schema.GroupVersionResource, q *question) bool {
	return slices.ContainsFunc(h.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return (r.Scope == nil || *r.Scope == admissionregistrationv1.AllScopes || *r.Scope == q.scope) &&
			(slices.Contains(r.Operations, admissionregistrationv1.OperationAll) || slices.Contains(r.Operations, admissionregistrationv1.OperationType(q.operation))) &&
			has(r.APIGroups, gvr.Group) && has(r.APIVersions, gvr.Version) &&
			slices.ContainsFunc(r.Resources, func(name string) bool {
				resource, sub, _ := strings.Cut(name, "/")
				return (resource == "*" || resource == gvr.Resource) && (sub == "*" || sub == q.subresource)
			})
	})
}

func has(list []string, s string) bool { return slices.Contains(list, "*") || slices.Contains(list, s) }
