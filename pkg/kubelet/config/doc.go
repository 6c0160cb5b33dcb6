// Package config finds out which pods shall run on the node: those the API server has bound to it, and the static ones whose
// manifests lie in a directory. It also keeps the mirror pods that show static pods at the API server.
package config

import corev1 "k8s.io/api/core/v1"

// Handler is told of every pod that is new, changed or gone. Calls come one after another.
type Handler interface {
	Update(pod *corev1.Pod)
	Remove(pod *corev1.Pod)
}
