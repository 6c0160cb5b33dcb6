package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/podspec"
)

// podWarnings warns about common mistakes in a new pod's name and spec. Kubernetes does not warn about updates.
func podWarnings(p, old *corev1.Pod) []string {
	if old != nil {
		return nil
	}
	w := podspec.NameWarnings(p.Name, "the Pod's hostname")
	return append(w, podspec.Warnings(&p.Spec, p.Annotations, nil)...)
}
