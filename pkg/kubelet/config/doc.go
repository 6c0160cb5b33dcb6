// Package config finds out which pods are to run on the node: those the API server has bound to it, and the static ones
// whose manifests lie in a directory or at a URL.
package config

import corev1 "k8s.io/api/core/v1"

// Handler receives every pod that is new, changed or gone. A source's calls come one after another. (It is an alias, so
// that receivers need not import the sources.)
type Handler = interface {
	Update(pod *corev1.Pod)
	Remove(pod *corev1.Pod)
}
