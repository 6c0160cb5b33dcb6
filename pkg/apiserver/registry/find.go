package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// Getter reads single objects of one resource; a Store is one. Objects it returns belong to the caller.
type Getter interface {
	// Get reads linearizably: it sees every write that was acknowledged before the call.
	Get(ctx context.Context, ns, name string) (runtime.Object, error)
	// GetCached reads what is at hand, which may lack the newest writes. It asks nobody but the watch cache.
	GetCached(ctx context.Context, ns, name string) (runtime.Object, error)
}

// Find reads what is at hand, and the newest state only if that has no such object: an object that a client has made
// just now is always found, also one made through another API server, and all other calls cost etcd nothing. Changes of
// an object that is found may be missing. The error is Get's, or says that the object is no T.
func Find[T runtime.Object](ctx context.Context, g Getter, ns, name string) (T, error) {
	obj, err := g.GetCached(ctx, ns, name)
	if apierrors.IsNotFound(err) {
		obj, err = g.Get(ctx, ns, name)
	}
	found, ok := obj.(T)
	if err == nil && !ok {
		err = fmt.Errorf("reading %s/%s: got a %T instead of a %T", ns, name, obj, found)
	}
	return found, err
}
