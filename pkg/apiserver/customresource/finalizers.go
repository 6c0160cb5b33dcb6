package customresource

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// finalizerWarnings are of the finalizers of obj that old, which may be nil, did not have, and whose names others may
// choose as well. Of objects with a Go type Kubernetes refuses such names; of custom resources it always took them.
func finalizerWarnings(obj, old metav1.Object) []string {
	var had []string
	if old != nil {
		had = old.GetFinalizers()
	}
	names := slices.Clone(obj.GetFinalizers())
	slices.Sort(names)
	var out []string
	for _, name := range slices.Compact(names) {
		switch {
		case slices.Contains(had, name), strings.Contains(name, "/"),
			name == metav1.FinalizerOrphanDependents, name == metav1.FinalizerDeleteDependents,
			name == string(corev1.FinalizerKubernetes):
		case strings.Contains(name, "."):
			out = append(out, fmt.Sprintf(
				"metadata.finalizers: %q: prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers", name))
		default:
			out = append(out, fmt.Sprintf(
				"metadata.finalizers: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers", name))
		}
	}
	return out
}
