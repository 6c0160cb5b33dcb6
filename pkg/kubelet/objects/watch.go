package objects

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient"
)

// watch follows one object until its last user is gone or ctx is done.
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
	apiclient.Follow(ctx, lister, "kubelet-"+e.kind.singular(), store{c, e}, c.cfg.Log)
}

// store is an entry that is told what becomes of its object.
type store struct {
	c *Cache
	e *entry
}

var _ apiclient.Sink[metav1.Object] = store{}

// Set records the object.
func (s store) Set(o metav1.Object) {
	if o.GetName() == s.e.name {
		s.c.changed(s.e, o)
	}
}

// Delete records that there is no object.
func (s store) Delete(o metav1.Object) {
	if o.GetName() == s.e.name {
		s.c.changed(s.e, nil)
	}
}

// Replace records the one object of a list, or that there is none.
func (s store) Replace(all []metav1.Object) {
	for _, o := range all {
		if o.GetName() == s.e.name {
			s.c.changed(s.e, o)
			return
		}
	}
	s.c.changed(s.e, nil)
}
