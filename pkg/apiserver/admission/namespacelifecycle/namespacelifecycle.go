// Package namespacelifecycle is the admission plug-in NamespaceLifecycle: nothing is created in a namespace that is not
// there or that is on its way out, and the system's own namespaces stay.
package namespacelifecycle

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
)

type plugin struct{ namespaces registry.Getter }

// New returns the plug-in, which changes no namespace that it reads.
func New(namespaces registry.Getter) admission.Plugin {
	return admission.Plugin{Name: "NamespaceLifecycle", Validator: plugin{namespaces}, Mutator: plugin{namespaces}}
}

// Admit refuses before anything else is done for the request.
func (p plugin) Admit(ctx context.Context, a *admission.Attributes) error { return p.check(ctx, a) }

// Validate refuses deletions, which have no mutating phase, and what a mutating plug-in moved.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Operation == admission.Create {
		return nil
	}
	return p.check(ctx, a)
}

func (p plugin) check(ctx context.Context, a *admission.Attributes) error {
	if a.Is(corev1.Resource("namespaces")) {
		if a.Operation == admission.Delete && immortal(a.Name) {
			return admission.Forbid(a, "this namespace may not be deleted")
		}
		return nil
	}
	if a.Operation != admission.Create || a.Namespace == "" || isAccessReview(a) {
		return nil
	}
	ns, err := registry.Find[*corev1.Namespace](ctx, p.namespaces, "", a.Namespace)
	if err != nil {
		return err
	}
	if ns.Status.Phase != corev1.NamespaceTerminating && ns.DeletionTimestamp == nil {
		return nil
	}
	return terminating(a)
}

// isAccessReview: asking about a namespace that is not there is allowed.
func isAccessReview(a *admission.Attributes) bool {
	return a.Resource.Group == "authorization.k8s.io" && a.Resource.Resource == "localsubjectaccessreviews"
}

func immortal(name string) bool {
	return name == metav1.NamespaceDefault || name == metav1.NamespaceSystem || name == metav1.NamespacePublic
}

// terminating is a 403 whose cause lets controllers see that it is no use to try again.
func terminating(a *admission.Attributes) error {
	err := admission.Forbid(a, "unable to create new content in namespace %s because it is being terminated",
		a.Namespace)
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{
			Type:    corev1.NamespaceTerminatingCause,
			Message: fmt.Sprintf("namespace %s is being terminated", a.Namespace), Field: "metadata.namespace"})
	}
	return err
}
