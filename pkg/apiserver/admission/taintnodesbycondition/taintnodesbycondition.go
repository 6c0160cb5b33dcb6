// Package taintnodesbycondition is the admission plug-in TaintNodesByCondition: a new node takes no pods until it has
// been seen ready.
package taintnodesbycondition

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/apiserver/admission"
)

type plugin struct{}

// New returns the plug-in.
func New() admission.Plugin {
	return admission.Plugin{Name: "TaintNodesByCondition", Mutator: plugin{}}
}

// Admit implements admission.Mutator.
func (plugin) Admit(_ context.Context, a *admission.Attributes) error {
	node, ok := a.Object.(*corev1.Node)
	if !ok || !a.Is(corev1.Resource("nodes")) || a.Operation != admission.Create {
		return nil
	}
	for _, t := range node.Spec.Taints {
		if t.Key == corev1.TaintNodeNotReady && t.Effect == corev1.TaintEffectNoSchedule {
			return nil
		}
	}
	node.Spec.Taints = append(node.Spec.Taints,
		corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	return nil
}
