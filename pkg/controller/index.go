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

// NewIndex adds an index to an informer. The name says what the values mean: whoever asks the same informer for the
// same name gets the same index, whatever function he passes. An index that several controllers share is therefore
// defined in one package, which they call. values must depend on the object alone, and must not change it.
//
// It does not matter whether the informer runs already: the objects that it has are indexed before NewIndex returns.
// And nobody can read an index that does not exist, because this function alone makes them.
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
