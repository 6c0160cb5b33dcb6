package objects

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
)

// watch follows one object until its last user is gone or ctx is done.
func (c *Cache) watch(ctx context.Context, e *entry, changed func([]types.UID)) {
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
	apiclient.Follow(ctx, lister, "kubelet-"+e.kind.singular(), store{c, e, changed}, c.cfg.Log)
}

// store puts what a watch sees of one object into its entry, and tells changed of the pods that refer to it.
type store struct {
	c       *Cache
	e       *entry
	changed func([]types.UID)
}

var _ apiclient.Sink[metav1.Object] = store{}

// Set records the object.
func (s store) Set(o metav1.Object) {
	if o.GetName() == s.e.name {
		s.observe(o)
	}
}

// Delete records that there is no object.
func (s store) Delete(o metav1.Object) {
	if o.GetName() == s.e.name {
		s.observe(nil)
	}
}

// Replace records the one object of a list, or that there is none.
func (s store) Replace(all []metav1.Object) {
	for _, o := range all {
		if o.GetName() == s.e.name {
			s.observe(o)
			return
		}
	}
	s.observe(nil)
}

func (s store) observe(o metav1.Object) {
	if pods := s.c.observe(s.e, o); len(pods) > 0 {
		s.changed(pods)
	}
}
