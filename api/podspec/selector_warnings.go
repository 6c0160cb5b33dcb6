package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// spreadWarnings: a constraint may be about old labels, and without a selector it counts no pod at all.
func spreadWarnings(s *corev1.PodSpec, path *field.Path) []string {
	var w []string
	for i := range s.TopologySpreadConstraints {
		c, at := &s.TopologySpreadConstraints[i], path.Child("topologySpreadConstraints").Index(i)
		w = append(w, keyWarnings(c.TopologyKey, at.Child("topologyKey"))...)
		if c.LabelSelector == nil {
			w = append(w, noSelector(at))
		}
	}
	return w
}

func noSelector(at *field.Path) string {
	return fmt.Sprintf("%s: a null labelSelector results in matching no pod", at.Child("labelSelector"))
}

// affinityWarnings: so it is with an affinity.
func affinityWarnings(s *corev1.PodSpec, path *field.Path) []string {
	var w []string
	missing := func(at *field.Path) { w = append(w, noSelector(at)) }
	terms := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, at *field.Path) {
		for i := range required {
			if required[i].LabelSelector == nil {
				missing(at.Child(requiredTerms).Index(i))
			}
		}
		for i := range preferred {
			if preferred[i].PodAffinityTerm.LabelSelector == nil {
				missing(at.Child(preferredTerms).Index(i).Child("podAffinityTerm"))
			}
		}
	}
	if a := s.Affinity; a != nil && a.PodAffinity != nil {
		terms(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("affinity", "podAffinity"))
	}
	if a := s.Affinity; a != nil && a.PodAntiAffinity != nil {
		terms(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
			path.Child("affinity", "podAntiAffinity"))
	}
	return w
}
