package controller

import (
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/apiclient"
)

// Index finds the objects of an informer by values that a function derives from each of them, without a look at the
// others. The informer updates it with every change.
type Index[T apiclient.Object] struct {
	name  string
	store cache.Indexer
}

// NewIndex adds an index to an informer. The name says what the values mean: a second call for the same informer with
// the same name returns the first index, whatever function it passes. One package therefore defines an index that
// several controllers share, and they call it. values must depend on the object alone, and must not change it.
//
// The informer may run before or after: the objects that it has are indexed before NewIndex returns. An index that does
// not exist cannot be read, because only this function returns one.
func NewIndex[T apiclient.Object](i *Informer[T], name string, values func(T) []string) Index[T] {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, ok := i.store.GetIndexers()[name]; !ok {
		// The store refuses nothing but a name that it has.
		_ = i.store.AddIndexers(cache.Indexers{name: func(o any) ([]string, error) { return values(o.(T)), nil }})
	}
	return Index[T]{name: name, store: i.store}
}

// At returns the cached objects that have a value. They are shared: DeepCopy before changing one.
func (x Index[T]) At(value string) []T {
	all, _ := x.store.ByIndex(x.name, value) // fails only for an index that does not exist
	return cast[T](all)
}

// Values returns the values that cached objects have, in no order.
func (x Index[T]) Values() []string { return x.store.ListIndexFuncValues(x.name) }
