package match

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/admission"
)

// Selectors are those of a webhook, a policy or a binding.
type Selectors struct{ namespaces, objects labels.Selector }

// NewSelectors reads selectors that were valid when they were stored; nil is one that selects everything.
func NewSelectors(namespaces, objects *metav1.LabelSelector) Selectors {
	return Selectors{selector(namespaces), selector(objects)}
}

func selector(s *metav1.LabelSelector) labels.Selector {
	if s == nil {
		return labels.Everything()
	}
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return out
}

// Selects reports whether s select the request: one of its objects, and its namespace.
func (r *Request) Selects(ctx context.Context, s *Selectors) (bool, error) {
	if !s.objects.Empty() && !selects(s.objects, r.A.Object) && !selects(s.objects, r.A.OldObject) {
		return false, nil
	}
	if s.namespaces.Empty() {
		return true, nil
	}
	return r.inNamespace(ctx, s.namespaces)
}

// selects reports whether an object's labels match; an object without metadata has no labels to match.
func selects(s labels.Selector, obj runtime.Object) bool {
	if obj == nil {
		return false
	}
	m, err := meta.Accessor(obj)
	return err == nil && s.Matches(labels.Set(m.GetLabels()))
}

// inNamespace asks the labels of the request's namespace. What is in no namespace is always selected.
func (r *Request) inNamespace(ctx context.Context, s labels.Selector) (bool, error) {
	a := r.A
	name := NamespaceOf(a)
	if name == "" && !aboutNamespace(a) {
		return true, nil
	}
	if aboutNamespace(a) && a.Subresource == "" &&
		(a.Operation == admission.Create || a.Operation == admission.Update) {
		return selects(s, a.Object), nil
	}
	ns, err := r.namespace(ctx, name)
	return err == nil && s.Matches(labels.Set(ns.Labels)), err
}

// namespace returns the named one.
func (r *Request) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	obj, err := r.Namespaces.GetCached(ctx, "", name)
	if apierrors.IsNotFound(err) { // it may be new
		obj, err = r.Namespaces.Get(ctx, "", name)
	}
	if err != nil {
		return nil, err
	}
	ns, ok := obj.(*corev1.Namespace)
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	return ns, nil
}

// NamespaceOf is the namespace that a request has: one about a Namespace has its name, as upstream.
func NamespaceOf(a *admission.Attributes) string {
	if aboutNamespace(a) {
		return a.Name
	}
	return a.Namespace
}
