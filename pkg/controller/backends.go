package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
)

// WatchBackends adds a Service to l whenever a pod that it selects comes, goes, or changes in a way that may change what the
// Service leads to.
func WatchBackends(l *Loop[Key], services *Informer[*corev1.Service], pods *Informer[*corev1.Pod]) error {
	wake := func(p *corev1.Pod) { AddSelecting(l, services, p) }
	return Watch(l, pods, Handlers[*corev1.Pod]{Add: wake, Delete: wake, Update: func(old, p *corev1.Pod) {
		if backendChanged(old, p) {
			AddSelecting(l, services, old, p)
		}
	}})
}

// AddSelecting adds the Services to l that select one of the pods, which are of one namespace: several states of one pod.
func AddSelecting(l *Loop[Key], services *Informer[*corev1.Service], pods ...*corev1.Pod) {
	for _, s := range services.InNamespace(pods[0].Namespace) {
		if len(s.Spec.Selector) == 0 {
			continue
		}
		sel := labels.SelectorFromSet(s.Spec.Selector)
		for _, p := range pods {
			if sel.Matches(labels.Set(p.Labels)) {
				l.Add(KeyOf(s))
				break
			}
		}
	}
}

// backendChanged tells whether a change of a pod may change an endpoint.
func backendChanged(old, p *corev1.Pod) bool {
	return old.Spec.NodeName != p.Spec.NodeName || old.DeletionTimestamp.IsZero() != p.DeletionTimestamp.IsZero() ||
		PodReady(old) != PodReady(p) || PodTerminal(old) != PodTerminal(p) ||
		!equality.Semantic.DeepEqual(old.Status.PodIPs, p.Status.PodIPs) || !labels.Equals(old.Labels, p.Labels)
}
