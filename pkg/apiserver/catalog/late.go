package catalog

import (
	"context"
	"fmt"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/registry"
)

// Late is the store of a resource that may not be served yet, or not any more: each call goes to the store there is
// then. So what the server is wired of can be made before the resources that it reads. While there is none every call
// is refused (503): a check that cannot look must not pass.
func (c *Catalog) Late(gr schema.GroupResource) registry.Store { return late{catalog: c, gr: gr} }

type late struct {
	catalog *Catalog
	gr      schema.GroupResource
	// admitted is for writes that do not ask admission.
	admitted bool
	// shared is for reads that share their objects.
	shared bool
}

func (l late) store() (registry.Store, error) {
	if s := l.catalog.Store(l.gr); s != nil {
		if l.admitted {
			s = s.Admitted()
		}
		return s, nil
	}
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("%s are not served", l.gr))
}

// reader is the store to read from.
func (l late) reader() (registry.Reader, error) {
	s, err := l.store()
	if err == nil && l.shared {
		return s.Shared(), nil
	}
	return s, err
}

// New implements registry.Store; nil while there is no store.
func (l late) New() runtime.Object {
	s, err := l.store()
	if err != nil {
		return nil
	}
	return s.New()
}

// Get implements registry.Store.
func (l late) Get(ctx context.Context, ns, name string) (runtime.Object, error) {
	s, err := l.reader()
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, ns, name)
}

// GetCached implements registry.Store.
func (l late) GetCached(ctx context.Context, ns, name string) (runtime.Object, error) {
	s, err := l.reader()
	if err != nil {
		return nil, err
	}
	return s.GetCached(ctx, ns, name)
}

// List implements registry.Store.
func (l late) List(ctx context.Context, ns, labelSelector string) ([]runtime.Object, error) {
	s, err := l.reader()
	if err != nil {
		return nil, err
	}
	return s.List(ctx, ns, labelSelector)
}

// Each implements registry.Store.
func (l late) Each(ctx context.Context, ns, labelSelector string) iter.Seq2[runtime.Object, error] {
	s, err := l.reader()
	if err != nil {
		return func(yield func(runtime.Object, error) bool) { yield(nil, err) }
	}
	return s.Each(ctx, ns, labelSelector)
}

// Create implements registry.Store.
func (l late) Create(ctx context.Context, ns string, obj runtime.Object, opts *metav1.CreateOptions) (runtime.Object,
	error) {
	s, err := l.store()
	if err != nil {
		return nil, err
	}
	return s.Create(ctx, ns, obj, opts)
}

// Update implements registry.Store.
func (l late) Update(ctx context.Context, ns, name, subresource string,
	change func(runtime.Object) (runtime.Object, error), opts *metav1.UpdateOptions) (runtime.Object, error) {
	s, err := l.store()
	if err != nil {
		return nil, err
	}
	return s.Update(ctx, ns, name, subresource, change, opts)
}

// Admitted implements registry.Store.
func (l late) Admitted() registry.Store {
	l.admitted = true
	return l
}

// Shared implements registry.Store.
func (l late) Shared() registry.Reader {
	l.shared = true
	return l
}

// Delete implements registry.Store.
func (l late) Delete(ctx context.Context, ns, name string, opts *metav1.DeleteOptions) (runtime.Object, bool, error) {
	s, err := l.store()
	if err != nil {
		return nil, false, err
	}
	return s.Delete(ctx, ns, name, opts)
}
