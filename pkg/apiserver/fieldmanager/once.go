package fieldmanager

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// once converts the live object of one request once for each version. The library asks for it again for every manager, which takes
// minutes for an object with many of them. What comes of the live object must not be changed, and the library does not: all it
// changes is what it has merged, which is converted every time.
type once struct {
	converter
	types managedfields.TypeConverter
	// objects are what typed values were made of, and versions what objects were converted to; both are of the live object.
	objects  map[*typed.TypedValue]runtime.Object
	versions map[runtime.Object]map[schema.GroupVersion]converted
}

type converted struct {
	obj runtime.Object
	err error
}

func newOnce(c converter, types managedfields.TypeConverter, live runtime.Object) *once {
	return &once{c, types, map[*typed.TypedValue]runtime.Object{}, map[runtime.Object]map[schema.GroupVersion]converted{live: {}}}
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (o *once) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	made, ofLive := o.versions[in]
	to, ok := target.(schema.GroupVersion)
	if !ofLive || !ok {
		return o.converter.ConvertToVersion(in, target)
	}
	if c, ok := made[to]; ok {
		return c.obj, c.err
	}
	out, err := o.converter.ConvertToVersion(in, target)
	made[to] = converted{out, err}
	if err == nil && o.versions[out] == nil {
		o.versions[out] = map[schema.GroupVersion]converted{}
	}
	return out, err
}

// ObjectToTyped implements managedfields.TypeConverter. It leaves managedFields out, which nobody owns and which may be most of the object.
func (o *once) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	out, err := o.types.ObjectToTyped(withoutFields(obj), opts...)
	if _, ofLive := o.versions[obj]; ofLive && err == nil {
		o.objects[out] = obj
	}
	return out, err
}

// TypedToObject implements managedfields.TypeConverter.
func (o *once) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	if obj := o.objects[value]; obj != nil {
		return obj, nil
	}
	return o.types.TypedToObject(value)
}

// withoutFields returns obj without managedFields, a shallow copy if it has any.
func withoutFields(obj runtime.Object) runtime.Object {
	access, err := meta.Accessor(obj)
	if err != nil || access.GetManagedFields() == nil {
		return obj
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return withoutUnstructuredFields(u)
	}
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer {
		return obj
	}
	out := reflect.New(v.Type().Elem())
	out.Elem().Set(v.Elem())
	bare, ok := out.Interface().(runtime.Object)
	if !ok {
		return obj
	}
	if access, err = meta.Accessor(bare); err != nil {
		return obj
	}
	access.SetManagedFields(nil)
	return bare
}

func withoutUnstructuredFields(u *unstructured.Unstructured) runtime.Object {
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return u
	}
	out := &unstructured.Unstructured{Object: without(u.Object, "metadata")}
	out.Object["metadata"] = without(metadata, "managedFields")
	return out
}

func without(m map[string]any, key string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}
