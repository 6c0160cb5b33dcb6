package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	for _, k := range slices.Sorted(maps.Keys(annotations)) {
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
