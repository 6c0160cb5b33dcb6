package core

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Annotations of long ago that fields have taken the place of.
const (
	seccompPodAnnotation        = "seccomp.security.alpha.kubernetes.io/pod"
	seccompContainerAnnotations = "container.seccomp.security.alpha.kubernetes.io/"
	criticalPodAnnotation       = "scheduler.alpha.kubernetes.io/critical-pod"
)

func annotationWarnings(annotations map[string]string, path *field.Path) []string {
	var w []string
	for k := range annotations {
		switch {
		case strings.HasPrefix(k, appArmorAnnotation):
			w = append(w, fmt.Sprintf("%s: deprecated since v1.30; use the \"appArmorProfile\" field instead", path.Key(k)))
		case k == seccompPodAnnotation || strings.HasPrefix(k, seccompContainerAnnotations):
			w = append(w, fmt.Sprintf("%s: non-functional in v1.27+; use the \"seccompProfile\" field instead", path.Key(k)))
		case k == criticalPodAnnotation:
			w = append(w, fmt.Sprintf("%s: non-functional in v1.16+; use the \"priorityClassName\" field instead", path.Key(k)))
		}
	}
	return w
}

// projectedWarnings: a source that projects nothing, and files of two sources in the same place.
func projectedWarnings(volumes []corev1.Volume) []string {
	var w []string
	for i := range volumes {
		p := volumes[i].Projected
		if p == nil {
			continue
		}
		name := volumes[i].Name
		taken := map[string]string{}
		for j := range p.Sources {
			source, paths := projectedPaths(&p.Sources[j])
			if source == "" {
				w = append(w, fmt.Sprintf("volume %q (Projected) has no sources provided", name))
			}
			for _, path := range paths {
				if other, ok := taken[path]; ok {
					w = append(w, fmt.Sprintf("volume %q (Projected): overlapping paths: %q (%s) with %q (%s)", name, path, source, path, other))
					continue
				}
				taken[path] = source
			}
		}
	}
	return w
}

// projectedPaths names a source as warnings do, with the paths that it is known to fill.
func projectedPaths(s *corev1.VolumeProjection) (source string, paths []string) {
	items := func(list []corev1.KeyToPath) {
		for _, k := range list {
			paths = append(paths, k.Path)
		}
	}
	switch {
	case s.Secret != nil:
		source = fmt.Sprintf("Secret %q", s.Secret.Name)
		items(s.Secret.Items)
	case s.ConfigMap != nil:
		source = fmt.Sprintf("ConfigMap %q", s.ConfigMap.Name)
		items(s.ConfigMap.Items)
	case s.DownwardAPI != nil:
		source = "DownwardAPI"
		for _, f := range s.DownwardAPI.Items {
			paths = append(paths, f.Path)
		}
	case s.ServiceAccountToken != nil:
		source, paths = "ServiceAccountToken", []string{s.ServiceAccountToken.Path}
	case s.ClusterTrustBundle != nil:
		source, paths = "ClusterTrustBundle", []string{s.ClusterTrustBundle.Path}
	case s.PodCertificate != nil:
		source = "PodCertificate"
	}
	return source, paths
}

// selectorWarnings: without a selector an affinity or spread constraint counts no pod at all.
func selectorWarnings(s *corev1.PodSpec, path *field.Path) []string {
	var w []string
	missing := func(at *field.Path) {
		w = append(w, fmt.Sprintf("%s: a null labelSelector results in matching no pod", at.Child("labelSelector")))
	}
	for i := range s.TopologySpreadConstraints {
		if s.TopologySpreadConstraints[i].LabelSelector == nil {
			missing(path.Child("topologySpreadConstraints").Index(i))
		}
	}
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
		terms(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("affinity", "podAffinity"))
	}
	if a := s.Affinity; a != nil && a.PodAntiAffinity != nil {
		terms(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("affinity", "podAntiAffinity"))
	}
	return w
}
