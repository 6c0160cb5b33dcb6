package registry

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/admission"
)

// admit runs mutating admission on a.Object, which may be another object then, and returns the access to what is there
// now. It is defaulted again: a plug-in may have dropped what had a default, or added a part (a container) whose fields
// have some. Who and which version the object is, the caller checks again; that it is still of the stored kind is
// checked here.
func (g *Generic) admit(ctx context.Context, a *admission.Attributes, def func(runtime.Object)) (metav1.Object, error) {
	access, err := meta.Accessor(a.Object)
	if err != nil || g.Admission == nil {
		return access, err
	}
	was, fields := reflect.TypeOf(a.Object), access.GetManagedFields()
	a.Default = def
	if err := g.Admission.Admit(ctx, a); err != nil {
		return nil, err
	}
	if err := stillOfKind(a.Object, g.codec.GVK(), was); err != nil {
		return nil, err
	}
	if def != nil {
		def(a.Object)
	}
	if access, err = meta.Accessor(a.Object); err != nil {
		return nil, fmt.Errorf("admission of %s: %w", g.gr, err)
	}
	keepFields(access, fields, a.Warn)
	return access, nil
}

// stillOfKind makes sure that admission left an object of the stored kind, want, whose Go type is was, and that it says
// so.
func stillOfKind(obj runtime.Object, want schema.GroupVersionKind, was reflect.Type) error {
	if reflect.TypeOf(obj) != was {
		return apierrors.NewInternalError(fmt.Errorf("admission replaced a %s by a %T", want, obj))
	}
	if got := obj.GetObjectKind().GroupVersionKind(); !got.Empty() && got != want {
		return apierrors.NewInternalError(fmt.Errorf("admission replaced a %s by a %s", want, got))
	}
	obj.GetObjectKind().SetGroupVersionKind(want)
	return nil
}
