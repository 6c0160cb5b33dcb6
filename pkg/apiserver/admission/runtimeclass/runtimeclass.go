// Package runtimeclass is the admission plug-in RuntimeClass. The server has no runtime classes (node.k8s.io), so that a pod
// which names one is refused, as Kubernetes refuses a class that is not there: no node could run the pod.
package runtimeclass

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/apiserver/admission"
)

type plugin struct{}

// New returns the plug-in.
func New() admission.Plugin { return admission.Plugin{Name: "RuntimeClass", Mutator: plugin{}} }

// Admit implements admission.Mutator. It is asked before validation, so that a missing class is what the client hears of.
func (plugin) Admit(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is(corev1.Resource("pods")) || a.Operation != admission.Create {
		return nil
	}
	if name := pod.Spec.RuntimeClassName; name != nil {
		return admission.Forbid(a, "pod rejected: RuntimeClass %q not found", *name)
	}
	if len(pod.Spec.Overhead) > 0 {
		return admission.Forbid(a, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
	}
	return nil
}
