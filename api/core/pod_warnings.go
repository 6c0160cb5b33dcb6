package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/podspec"
)

// podWarnings tells a client about common mistakes in a new pod's name and spec; an unchanged spec is not complained
// about again.
func podWarnings(p, old *corev1.Pod) []string {
	if old != nil && (old.Generation == p.Generation || !podSpecChanged(p, old)) {
		return nil
	}
	var w []string
	if old == nil {
		w = podspec.NameWarnings(p.Name, "the Pod's hostname")
	}
	return append(w, podspec.Warnings(&p.Spec, p.Annotations, nil)...)
}
