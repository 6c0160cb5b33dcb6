package registry

import (
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/storage"
)

// Shared implements Store.
func (g *Generic) Shared() Reader { return shared{g} }

// shared reads a store's objects for many at once.
type shared struct{ store *Generic }

// Get implements Reader.
func (s shared) Get(ctx context.Context, ns, name string) (runtime.Object, error) {
	return s.store.getObject(ctx, ns, name, 0, s.object)
}

// GetCached implements Reader.
func (s shared) GetCached(ctx context.Context, ns, name string) (runtime.Object, error) {
	return s.store.getObject(ctx, ns, name, 1, s.object)
}

// List implements Reader.
func (s shared) List(ctx context.Context, ns, labelSelector string) ([]runtime.Object, error) {
	return collect(s.Each(ctx, ns, labelSelector))
}

// Each implements Reader.
func (s shared) Each(ctx context.Context, ns, labelSelector string) iter.Seq2[runtime.Object, error] {
	return decodeEach(ctx, s.store, ns, labelSelector, s.object)
}

// object is the one object that the item is decoded to.
func (s shared) object(item *storage.Item) (runtime.Object, error) {
	obj, err := item.Decoded(func(item *storage.Item) (any, error) { return s.store.object(item) })
	if err != nil {
		return nil, err
	}
	if shared := obj.(runtime.Object); shared.GetObjectKind().GroupVersionKind() == s.store.codec.GVK() {
		return shared, nil
	}
	return s.store.object(item) // the kind is stored in another version since the item was decoded
}
