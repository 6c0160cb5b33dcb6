package objects

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// watch follows one object until its last user is gone or ctx is done. client-go's reflector does the listing, the resuming and
// the backing off; its store is the entry itself.
func (c *Cache) watch(ctx context.Context, e *entry) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-e.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	lister := c.cfg.Client.Objects(e.kind.plural(), e.namespace, "metadata.name="+e.name)
	cache.NewReflectorWithOptions(lister, nil, store{c, e}, cache.ReflectorOptions{Name: "kubelet-" + e.kind.singular()}).RunWithContext(ctx)
}

// store is the reflector's view of an entry.
type store struct {
	c *Cache
	e *entry
}

var _ cache.ReflectorStore = store{}

// Add records the object.
func (s store) Add(obj any) error { return s.Update(obj) }

// Update records the object.
func (s store) Update(obj any) error {
	if o, ok := obj.(metav1.Object); ok && o.GetName() == s.e.name {
		s.c.changed(s.e, o)
	}
	return nil
}

// Delete records that there is no object.
func (s store) Delete(obj any) error {
	if o, ok := obj.(metav1.Object); ok && o.GetName() == s.e.name {
		s.c.changed(s.e, nil)
	}
	return nil
}

// Replace records the one object of a list, or that there is none.
func (s store) Replace(list []any, _ string) error {
	for _, obj := range list {
		if o, ok := obj.(metav1.Object); ok && o.GetName() == s.e.name {
			s.c.changed(s.e, o)
			return nil
		}
	}
	s.c.changed(s.e, nil)
	return nil
}

// Resync has nothing to do.
func (s store) Resync() error { return nil }
