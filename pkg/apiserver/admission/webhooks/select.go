package webhooks

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/admission"
)

// concerns tells whether a webhook whose rules match is to be called: what its selectors and match conditions say.
func (r *request) concerns(ctx context.Context, c *candidate) (bool, error) {
	if !c.labels.Empty() && !selects(c.labels, r.a.Object) && !selects(c.labels, r.a.OldObject) {
		return false, nil
	}
	if !c.namespaces.Empty() {
		if in, err := r.inNamespace(ctx, c.namespaces); !in || err != nil {
			return false, err
		}
	}
	return r.meets(ctx, c)
}

// selects tells whether an object's labels match; an object without metadata has no labels to match.
func selects(s labels.Selector, obj runtime.Object) bool {
	if obj == nil {
		return false
	}
	m, err := meta.Accessor(obj)
	return err == nil && s.Matches(labels.Set(m.GetLabels()))
}

// inNamespace asks the labels of the request's namespace. What is in no namespace is always selected.
func (r *request) inNamespace(ctx context.Context, s labels.Selector) (bool, error) {
	a := r.a
	name := namespaceOf(a)
	if name == "" && !aboutNamespace(a) {
		return true, nil
	}
	if aboutNamespace(a) && a.Subresource == "" && (a.Operation == admission.Create || a.Operation == admission.Update) {
		return selects(s, a.Object), nil
	}
	obj, err := r.Namespaces.GetCached(ctx, "", name)
	if apierrors.IsNotFound(err) { // it may be new
		obj, err = r.Namespaces.Get(ctx, "", name)
	}
	if err != nil {
		return false, err
	}
	ns, ok := obj.(*corev1.Namespace)
	return ok && s.Matches(labels.Set(ns.Labels)), nil
}
