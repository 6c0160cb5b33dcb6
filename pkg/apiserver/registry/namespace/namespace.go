// Package namespace is how a namespace ends: a deleted one is Terminating while spec.finalizers holds it; the namespace
// controller empties it and then takes its finalizer out by the finalize subresource, which removes the object.
package namespace

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/resources"
)

// Extend gives the namespaces row that behaviour. Functions the row has already are kept.
func Extend(row *resources.Row) {
	if row.Strategy.PrepareDelete == nil {
		row.Strategy.PrepareDelete = markTerminating
	}
	if row.Strategy.Held == nil {
		row.Strategy.Held = held
	}
	for i := range row.Subresources {
		sub := &row.Subresources[i]
		if sub.Name != "finalize" {
			continue
		}
		s := resources.Strategy{}
		if sub.Strategy != nil {
			s = *sub.Strategy
		}
		if s.PrepareUpdate == nil {
			s.PrepareUpdate = prepareFinalize
		}
		sub.Strategy = &s
	}
}

func markTerminating(obj runtime.Object) {
	obj.(*corev1.Namespace).Status.Phase = corev1.NamespaceTerminating
}

func held(obj runtime.Object) bool { return len(obj.(*corev1.Namespace).Spec.Finalizers) > 0 }

// prepareFinalize lets a client of finalize change spec.finalizers and metadata, and nothing else.
func prepareFinalize(obj, old runtime.Object) {
	obj.(*corev1.Namespace).Status = *old.(*corev1.Namespace).Status.DeepCopy()
}
