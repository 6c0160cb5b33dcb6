package customresource

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// finalizerWarnings warns about finalizers of obj, a custom resource, that old does not have and whose names others may
// choose as well; old is nil at a create. Kubernetes refuses such names for kinds with a Go type, and has always
// accepted them for custom resources.
func finalizerWarnings(obj, old runtime.Object) []string {
	var had []string
	if old != nil {
		had = old.(*unstructured.Unstructured).GetFinalizers()
	}
	names := slices.Clone(obj.(*unstructured.Unstructured).GetFinalizers())
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
