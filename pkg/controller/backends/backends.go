// Package backends is what endpoints and endpoint slices are both made from: which pods are behind a Service, and when
// that changed.
package backends

import (
	"errors"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/podindex"
)

// Index adds a Service to a loop whenever it changes, and whenever a pod that it selects comes, goes, or changes in a
// way that may change what the Service leads to. It does not ask all Services for each pod: each is filed under one
// pair of label and value that it selects by, the one that fewest others are filed under, so a pod asks for its own
// labels.
type Index struct {
	wake func(controller.Key)
	pods podindex.ByLabel

	mu     sync.Mutex
	byPair map[pair]map[controller.Key]labels.Set
	filed  map[controller.Key]pair
}

// pair is a label with its value in a namespace.
type pair struct{ namespace, label, value string }

// Watch feeds l, and makes it wait until all Services and pods have been seen.
func Watch(l *controller.Loop[controller.Key], services *controller.Informer[*corev1.Service],
	pods *controller.Informer[*corev1.Pod]) (*Index, error) {
	b := newIndex(l.Add, pods)
	return b, errors.Join(controller.Watch(l, services, b.ofServices()), controller.Watch(l, pods, b.ofPods()))
}

func newIndex(wake func(controller.Key), pods *controller.Informer[*corev1.Pod]) *Index {
	return &Index{wake: wake, pods: podindex.NewByLabel(pods), byPair: map[pair]map[controller.Key]labels.Set{},
		filed: map[controller.Key]pair{}}
}

// ofServices files Services. Each is woken after it was filed: its reconcile sees the pods that came before, and those
// that come later find it.
func (b *Index) ofServices() controller.Handlers[*corev1.Service] {
	changed := func(s *corev1.Service) {
		b.file(controller.KeyOf(s), s.Spec.Selector)
		b.wake(controller.KeyOf(s))
	}
	return controller.Handlers[*corev1.Service]{Add: changed, Update: func(_, s *corev1.Service) {
		changed(s)
	}, Delete: func(s *corev1.Service) {
		b.file(controller.KeyOf(s), nil)
		b.wake(controller.KeyOf(s))
	}}
}

func (b *Index) ofPods() controller.Handlers[*corev1.Pod] {
	return controller.Handlers[*corev1.Pod]{Add: b.Wake, Delete: b.Wake, Update: func(old, p *corev1.Pod) {
		if backendChanged(old, p) {
			b.Wake(old)
			b.Wake(p)
		}
	}}
}

// file files a Service by its selector; one without a selector selects nothing.
func (b *Index) file(key controller.Key, selector labels.Set) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at, ok := b.filed[key]; ok {
		delete(b.filed, key)
		if delete(b.byPair[at], key); len(b.byPair[at]) == 0 {
			delete(b.byPair, at)
		}
	}
	if len(selector) == 0 {
		return
	}
	best := b.best(key.Namespace, selector)
	if b.byPair[best] == nil {
		b.byPair[best] = map[controller.Key]labels.Set{}
	}
	b.byPair[best][key], b.filed[key] = selector, best
}

// best is the pair of a selector that fewest Services are filed under; the caller holds mu.
func (b *Index) best(namespace string, selector labels.Set) pair {
	var best pair
	for label, value := range selector {
		at := pair{namespace, label, value}
		if best.label == "" || len(b.byPair[at]) < len(b.byPair[best]) {
			best = at
		}
	}
	return best
}

// Wake adds the Services that select the pod.
func (b *Index) Wake(p *corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for label, value := range p.Labels {
		for key, selector := range b.byPair[pair{p.Namespace, label, value}] {
			if selects(selector, p.Labels) {
				b.wake(key)
			}
		}
	}
}

// Of returns the cached pods that the Service selects. It asks for those with the label that the Service is filed
// under, not for all of the namespace.
func (b *Index) Of(svc *corev1.Service) []*corev1.Pod {
	b.mu.Lock()
	at := b.filed[controller.KeyOf(svc)]
	if value, ok := svc.Spec.Selector[at.label]; !ok || value != at.value {
		// The cache has a newer Service than the one that was filed; it will be filed again, and looked at again.
		at = b.best(svc.Namespace, svc.Spec.Selector)
	}
	b.mu.Unlock()
	return slices.DeleteFunc(b.pods.With(at.namespace, at.label, at.value),
		func(p *corev1.Pod) bool {
			return !selects(svc.Spec.Selector, p.Labels)
		})
}

func selects(selector labels.Set, of map[string]string) bool {
	for label, value := range selector {
		if has, ok := of[label]; !ok || has != value {
			return false
		}
	}
	return true
}

// backendChanged reports whether a change of a pod may change an endpoint.
func backendChanged(old, p *corev1.Pod) bool {
	return old.Spec.NodeName != p.Spec.NodeName || old.DeletionTimestamp.IsZero() != p.DeletionTimestamp.IsZero() ||
		controller.PodReady(old) != controller.PodReady(p) ||
		controller.PodTerminal(old) != controller.PodTerminal(p) ||
		!equality.Semantic.DeepEqual(old.Status.PodIPs, p.Status.PodIPs) || !labels.Equals(old.Labels, p.Labels)
}
