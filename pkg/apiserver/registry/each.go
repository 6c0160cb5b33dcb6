package registry

import (
	"context"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/storage"
)

// List implements Store.
func (g *Generic) List(ctx context.Context, ns, labelSelector string) ([]runtime.Object, error) {
	return collect(g.Each(ctx, ns, labelSelector))
}

// Each implements Store.
func (g *Generic) Each(ctx context.Context, ns, labelSelector string) iter.Seq2[runtime.Object, error] {
	return decodeEach(ctx, g, ns, labelSelector, g.object)
}

// decodeEach is Reader.Each of the store g. object decodes an item.
func decodeEach(ctx context.Context, g *Generic, ns, labelSelector string,
	object func(*storage.Item) (runtime.Object, error)) iter.Seq2[runtime.Object, error] {
	return func(yield func(runtime.Object, error) bool) {
		items, err := matching(ctx, g, ns, labelSelector)
		for _, item := range items {
			var obj runtime.Object
			if err = ctx.Err(); err == nil {
				obj, err = object(item)
			}
			if err != nil {
				break
			}
			if !yield(obj, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// collect makes Reader.List of Reader.Each.
func collect(objects iter.Seq2[runtime.Object, error]) ([]runtime.Object, error) {
	out := []runtime.Object{}
	for obj, err := range objects {
		if err != nil {
			return nil, err
		}
		out = append(out, obj)
	}
	return out, nil
}

// matching lists the items of g that match the label selector. They are the cache's own.
func matching(ctx context.Context, g *Generic, ns, labelSelector string) ([]*storage.Item, error) {
	// Not the newest state, which would need an answer of etcd for each list: any that has this server's own writes.
	// Writes of other servers may be missing for a moment.
	opts := storage.ListOptions{Match: storage.NotOlderThan, Revision: g.written.Load()}
	if labelSelector != "" {
		selector, err := labels.Parse(labelSelector)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", g.gr, err)
		}
		opts.Filter = func(i *storage.Item) bool { return selector.Matches(i.Facts.Labels()) }
	}
	list, err := g.ListItems(ctx, ns, opts)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
