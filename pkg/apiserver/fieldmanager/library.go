package fieldmanager

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"bonsai/api/resources"
)

// library returns upstream's field manager for one write. live must not be nil. Conversions end with ctx.
//
// The library's manager is made for each write, because the subresource, the version and the context are fixed in it.
// It is a small chain of structs; what costs time is its type converter, which is cached.
func (m *Manager) library(
	ctx context.Context, w writeTarget, live runtime.Object,
) (*managedfields.FieldManager, error) {
	types, err := m.schemas.converter(w.row)
	if err != nil {
		return nil, err
	}
	// The library compares objects in the version of each entry, so every version needs the filter.
	reset := map[fieldpath.APIVersion]fieldpath.Filter{}
	if paths := resetFields(w.row, w.subresource); len(paths) > 0 {
		for _, gvk := range kinds(w.row) {
			reset[fieldpath.APIVersion(gvk.GroupVersion().String())] = fieldpath.NewExcludeSetFilter(pathSet(paths))
		}
	}
	// The variant for custom resources tolerates fields that the schema does not have.
	newManager := managedfields.NewDefaultFieldManager
	if dynamic(w.row) {
		newManager = managedfields.NewDefaultCRDFieldManager
	}
	c := converter{ctx, w.row}
	memo := newMemo(c, types, live)
	return newManager(memo, memo, c, c, w.gvk(), w.row.StoredGVK().GroupVersion(), w.subresource, reset)
}

// converter is a row in the form that the library needs: it makes, defaults and converts objects of the row's versions.
type converter struct {
	// ctx is a field because the library's interfaces take none, and a conversion may call a webhook.
	ctx context.Context
	row *resources.Row
}

// version returns a version of the row, nil if the row does not serve gv.
func (c converter) version(gv schema.GroupVersion) *resources.Version {
	if gv.Group != c.row.GVK.Group {
		return nil
	}
	for _, v := range c.row.ServedVersions() {
		if v.Name == gv.Version {
			return &v
		}
	}
	return nil
}

func (c converter) unknown(gvk schema.GroupVersionKind) error {
	return runtime.NewNotRegisteredErrForKind(c.row.Resource, gvk)
}

// New implements runtime.ObjectCreater.
func (c converter) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	var obj runtime.Object
	if gvk == c.row.StoredGVK() {
		obj = c.row.New()
	} else if v := c.version(gvk.GroupVersion()); v != nil {
		obj = v.New()
	} else {
		return nil, c.unknown(gvk)
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj, nil
}

// Default implements runtime.ObjectDefaulter.
//
// The library calls it on the result of an apply, which may have added parts that lack their defaults.
func (c converter) Default(obj runtime.Object) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if v := c.version(gvk.GroupVersion()); v != nil && v.Default != nil {
		v.Default(obj)
	}
	if gvk == c.row.StoredGVK() && c.row.Strategy.Default != nil {
		c.row.Strategy.Default(obj)
	}
}

// ConvertToVersion implements runtime.ObjectConvertor, through the stored version. It returns in itself if that has the
// version and the row's Go type.
//
// The hub functions may change their argument, and in may be the live object of the request, so both get a copy. A
// conversion is the costly part of this engine: for a custom resource it can be a webhook call (memo.go bounds their
// number).
func (c converter) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	to, ok := target.(schema.GroupVersion)
	if !ok {
		return nil, fmt.Errorf("convert to %v: not a version", target)
	}
	gvk, stored := in.GetObjectKind().GroupVersionKind(), c.row.StoredGVK()
	obj, err := c.typed(in, gvk)
	if err != nil || gvk.GroupVersion() == to {
		return obj, err
	}
	if gvk != stored {
		v := c.version(gvk.GroupVersion())
		if v == nil {
			return nil, c.unknown(gvk)
		}
		if obj, err = v.ToHub(c.ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if to == stored.GroupVersion() {
		return obj, nil
	}
	v := c.version(to)
	if v == nil {
		return nil, c.unknown(to.WithKind(gvk.Kind))
	}
	return v.FromHub(c.ctx, obj.DeepCopyObject())
}

// typed decodes an unstructured object into the row's Go type. Rows without a Go type keep it as it is. The results of
// the library's merges are unstructured. Unknown fields need no check here: the library has checked the configuration
// against the schema.
func (c converter) typed(in runtime.Object, gvk schema.GroupVersionKind) (runtime.Object, error) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok || dynamic(c.row) {
		return in, nil
	}
	obj, err := c.New(gvk)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj); err != nil {
		return nil, fmt.Errorf("unable to convert unstructured object to %v: %w", gvk, err)
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj, nil
}

// Convert implements runtime.ObjectConvertor; the library does not call it.
func (converter) Convert(_, _, _ any) error { return errors.ErrUnsupported }

// ConvertFieldLabel implements runtime.ObjectConvertor; the library does not call it.
func (converter) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errors.ErrUnsupported
}
