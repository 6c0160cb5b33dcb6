// Package defaultingressclass is the admission plug-in DefaultIngressClass: a new Ingress that says nothing of its
// class gets the one that is marked as the default.
package defaultingressclass

import (
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"

	"bonsai/api/networking"
	"bonsai/pkg/apiserver/admission"
)

type plugin struct{ classes admission.Classes }

// New returns the plug-in for the IngressClasses that classes lists.
func New(classes admission.Classes) admission.Plugin {
	return admission.Plugin{Name: "DefaultIngressClass", Mutator: plugin{classes}}
}

// Admit implements admission.Mutator. An Ingress that names its class in the old way, by an annotation, is left alone.
func (p plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	i, ok := a.Object.(*networkingv1.Ingress)
	if !ok || a.Operation != admission.Create || !a.Is(networkingv1.Resource("ingresses")) ||
		i.Spec.IngressClassName != nil {
		return nil
	}
	if _, annotated := i.Annotations[networking.ClassAnnotation]; annotated {
		return nil
	}
	class, err := admission.DefaultClass(ctx, p.classes, networkingv1.AnnotationIsDefaultIngressClass)
	if err != nil {
		return fmt.Errorf("listing ingress classes: %w", err)
	}
	i.Spec.IngressClassName = class
	return nil
}
