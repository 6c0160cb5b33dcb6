// Package namespaceautoprovision is the admission plug-in NamespaceAutoProvision, which is off unless it is enabled: it
// makes the namespace that something is created in and that does not exist. Whoever may create anything in a namespace
// thereby makes it, without the right to create namespaces.
package namespaceautoprovision

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
)

// Namespaces are what the plug-in reads and makes; a registry.Store of them is one.
type Namespaces interface {
	registry.Getter
	Create(ctx context.Context, ns string, obj runtime.Object, opts *metav1.CreateOptions) (runtime.Object, error)
}

type plugin struct{ namespaces Namespaces }

// New returns the plug-in.
func New(namespaces Namespaces) admission.Plugin {
	return admission.Plugin{Name: "NamespaceAutoProvision", Mutator: plugin{namespaces}}
}

// Admit implements admission.Mutator. A dry run makes no namespace.
func (p plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	if a.Operation != admission.Create || a.DryRun || a.Namespace == "" ||
		a.Resource.GroupResource() == corev1.Resource("namespaces") {
		return nil
	}
	_, err := registry.Find[*corev1.Namespace](ctx, p.namespaces, "", a.Namespace)
	if !apierrors.IsNotFound(err) {
		return err
	}
	_, err = p.namespaces.Create(ctx, "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace}},
		&metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return admission.Forbid(a, "%v", err)
	}
	return nil
}
