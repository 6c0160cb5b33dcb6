package controller

import (
	"slices"
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
	pods *Informer[*corev1.Pod]

	mu     sync.Mutex
	byPair map[pair]map[Key]labels.Set
	filed  map[Key]pair
}

// pair is a label with its value in a namespace.
type pair struct{ namespace, label, value string }

// String is different for different pairs: neither a namespace nor a label has a space or an equals sign.
func (p pair) String() string { return p.namespace + " " + p.label + "=" + p.value }

// WatchBackends feeds l, and makes it wait until all Services and pods have been seen.
func WatchBackends(l *Loop[Key], services *Informer[*corev1.Service], pods *Informer[*corev1.Pod]) (*Backends, error) {
	b := &Backends{wake: l.Add, pods: pods, byPair: map[pair]map[Key]labels.Set{}, filed: map[Key]pair{}}
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
	best := b.best(key.Namespace, selector)
	if b.byPair[best] == nil {
		b.byPair[best] = map[Key]labels.Set{}
	}
	b.byPair[best][key], b.filed[key] = selector, best
}

// best is the pair of a selector that fewest Services are filed under; the caller holds mu.
func (b *Backends) best(namespace string, selector labels.Set) pair {
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

// Of returns the cached pods that the Service selects. It asks for those with the label that the Service is filed under, not for
// all of the namespace.
func (b *Backends) Of(svc *corev1.Service) []*corev1.Pod {
	b.mu.Lock()
	at := b.filed[KeyOf(svc)]
	if value, ok := svc.Spec.Selector[at.label]; !ok || value != at.value {
		// The cache has a newer Service than the one that was filed; it will be filed again, and looked at again.
		at = b.best(svc.Namespace, svc.Spec.Selector)
	}
	b.mu.Unlock()
	found, _ := b.pods.store.ByIndex(byLabel, at.String())
	return slices.DeleteFunc(cast[*corev1.Pod](found), func(p *corev1.Pod) bool { return !selects(svc.Spec.Selector, p.Labels) })
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
