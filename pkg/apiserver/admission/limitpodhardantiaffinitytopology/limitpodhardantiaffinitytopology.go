// Package limitpodhardantiaffinitytopology is the admission plug-in LimitPodHardAntiAffinityTopology, which is off
// unless it is enabled: no pod may keep others out of more than one node, such as a whole zone, by a required
// anti-affinity.
package limitpodhardantiaffinitytopology

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/apiserver/admission"
)

type plugin struct{}

// New returns the plug-in.
func New() admission.Plugin {
	return admission.Plugin{Name: "LimitPodHardAntiAffinityTopology", Validator: plugin{}}
}

// Validate implements admission.Validator. The affinity of a pod cannot change, so an old pod that breaks the rule
// would be stuck with its finalizers if updates were refused.
func (plugin) Validate(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is(corev1.Resource("pods")) || a.Operation != admission.Create || pod.Spec.Affinity == nil ||
		pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	for _, term := range pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if term.TopologyKey != corev1.LabelHostname {
			return admission.Forbid(a,
				"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey %v but only key %v is allowed",
				term.TopologyKey, corev1.LabelHostname)
		}
	}
	return nil
}
