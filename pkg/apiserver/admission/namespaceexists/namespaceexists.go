// Package namespaceexists is the admission plug-in NamespaceExists, which is off unless it is enabled: nothing is
// written in a namespace that does not exist. NamespaceLifecycle, which is on by default, includes what it does for
// creations.
package namespaceexists

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
)

type plugin struct{ namespaces registry.Getter }

// New returns the plug-in, which changes no namespace that it reads.
func New(namespaces registry.Getter) admission.Plugin {
	return admission.Plugin{Name: "NamespaceExists", Validator: plugin{namespaces}}
}

// Validate implements admission.Validator.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Operation == admission.Connect || a.Namespace == "" ||
		a.Resource.GroupResource() == corev1.Resource("namespaces") {
		return nil
	}
	_, err := registry.Find[*corev1.Namespace](ctx, p.namespaces, "", a.Namespace)
	return err
}
