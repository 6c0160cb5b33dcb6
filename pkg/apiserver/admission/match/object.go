package match

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// newLike makes an empty object of obj's type.
func newLike(obj runtime.Object) runtime.Object {
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
}

// Empty makes an empty object of the version of v.
func (r *Request) Empty(v *View) runtime.Object {
	if rt := r.Catalog.Snapshot().Route(v.Resource); rt != nil && rt.GVK == v.Kind && rt.Version.FromHub != nil {
		return rt.Version.New()
	}
	return newLike(v.Object.Converted)
}

// Replace makes obj, of the version of v, the request's object, with what it leaves out filled in. v is of no use
// afterwards. The order is that of a request's own object: prune, fill in the version's defaults, convert, and fill in
// the rest. If the conversion fails, the request's object is unchanged.
func (r *Request) Replace(ctx context.Context, v *View, obj runtime.Object) error {
	rt := r.Catalog.Snapshot().Route(v.Resource)
	if rt != nil && rt.GVK == v.Kind {
		if rt.Version.Prune != nil {
			rt.Version.Prune(obj)
		}
		if rt.Version.Default != nil {
			rt.Version.Default(obj)
		}
	}
	if v.Kind == r.A.Kind {
		if r.A.Default != nil {
			r.A.Default(obj)
		}
		r.A.Object = obj
		r.changed(v, obj)
		return nil
	}
	if rt != nil && rt.Version.ToHub != nil {
		var err error
		if obj, err = rt.Version.ToHub(ctx, obj); err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	if r.A.Default != nil {
		r.A.Default(obj)
	}
	r.A.Object = obj
	r.changed(v, nil)
	return nil
}
