package controller

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
)

// Backends adds a Service to a loop whenever it changes, and whenever a pod that it selects comes, goes, or changes in a way that
// may change what the Service leads to. It does not ask all Services for each pod: each is filed under one pair of label and value
// that it selects by, the one that fewest others are filed under, so a pod asks for its own labels.
type Backends struct {
	wake func(Key)

	mu     sync.Mutex
	byPair map[pair]map[Key]labels.Set
	filed  map[Key]pair
}

// pair is a label with its value in a namespace.
type pair struct{ namespace, label, value string }

// WatchBackends feeds l, and makes it wait until all Services and pods have been seen.
func WatchBackends(l *Loop[Key], services *Informer[*corev1.Service], pods *Informer[*corev1.Pod]) (*Backends, error) {
	b := &Backends{wake: l.Add, byPair: map[pair]map[Key]labels.Set{}, filed: map[Key]pair{}}
	// A Service is woken after it was filed: its reconcile sees the pods that came before, and those that come later find it.
	changed := func(s *corev1.Service) {
		b.file(KeyOf(s), s.Spec.Selector)
		l.Add(KeyOf(s))
	}
	err := Watch(l, services, Handlers[*corev1.Service]{Add: changed, Update: func(_, s *corev1.Service) { changed(s) }, Delete: func(s *corev1.Service) {
		b.file(KeyOf(s), nil)
		l.Add(KeyOf(s))
	}})
	if err != nil {
		return nil, err
	}
	wake := func(p *corev1.Pod) { b.Wake(p) }
	return b, Watch(l, pods, Handlers[*corev1.Pod]{Add: wake, Delete: wake, Update: func(old, p *corev1.Pod) {
		if backendChanged(old, p) {
			b.Wake(old)
			b.Wake(p)
		}
	}})
}

// file files a Service by its selector; one without a selector selects nothing.
func (b *Backends) file(key Key, selector labels.Set) {
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
	var best pair
	for label, value := range selector {
		at := pair{key.Namespace, label, value}
		if best.label == "" || len(b.byPair[at]) < len(b.byPair[best]) {
			best = at
		}
	}
	if b.byPair[best] == nil {
		b.byPair[best] = map[Key]labels.Set{}
	}
	b.byPair[best][key], b.filed[key] = selector, best
}

// Wake adds the Services that select the pod.
func (b *Backends) Wake(p *corev1.Pod) {
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

func selects(selector labels.Set, of map[string]string) bool {
	for label, value := range selector {
		if has, ok := of[label]; !ok || has != value {
			return false
		}
	}
	return true
}

// backendChanged tells whether a change of a pod may change an endpoint.
func backendChanged(old, p *corev1.Pod) bool {
	return old.Spec.NodeName != p.Spec.NodeName || old.DeletionTimestamp.IsZero() != p.DeletionTimestamp.IsZero() ||
		PodReady(old) != PodReady(p) || PodTerminal(old) != PodTerminal(p) ||
		!equality.Semantic.DeepEqual(old.Status.PodIPs, p.Status.PodIPs) || !labels.Equals(old.Labels, p.Labels)
}
