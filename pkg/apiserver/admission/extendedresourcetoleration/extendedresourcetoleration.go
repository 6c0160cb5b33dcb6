// Package extendedresourcetoleration is the admission plug-in ExtendedResourceToleration, which is off unless it is
// enabled: a pod that asks for an extended resource tolerates the taint of its name. So an administrator keeps nodes
// with devices for the pods that use them.
package extendedresourcetoleration

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"bonsai/api/quantity"
	"bonsai/pkg/apiserver/admission"
)

type plugin struct{}

// New returns the plug-in.
func New() admission.Plugin {
	return admission.Plugin{Name: "ExtendedResourceToleration", Mutator: plugin{}}
}

// Admit implements admission.Mutator.
func (plugin) Admit(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is(corev1.Resource("pods")) || a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	asked := map[string]bool{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for name := range c.Resources.Requests {
			if quantity.IsExtended(name) {
				asked[string(name)] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) { // sorted: the same pod always becomes the same
		t := corev1.Toleration{Key: name, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(has corev1.Toleration) bool {
			return apiequality.Semantic.DeepEqual(has, t)
		}) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, t)
		}
	}
	return nil
}
