package framework

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Namespaces tells the labels of namespaces, which affinity terms may select by. Epoch changes with any of them.
type Namespaces interface {
	NamespaceLabels(name string) labels.Set
	Epoch() int64
}

// Workloads finds the pods that belong together: by the Services that select a pod, and by the pod's controller.
type Workloads interface {
	// SelectorFor returns what selects the pods that are alike to pod, nil if nothing does.
	SelectorFor(pod *corev1.Pod) labels.Selector
}
