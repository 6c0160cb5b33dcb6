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

// memo converts the live object of one request once for each version. The library converts it again for every manager,
// which takes minutes for an object with many of them. Sharing the results is safe because the library does not change
// them: it changes only what it merges, which memo converts each time.
//
// A version is converted once, however many managers the object has. One request uses a memo, on one goroutine, so it
// has no lock and is garbage after the request.
type memo struct {
	converter
	types managedfields.TypeConverter
	// objects has the objects that typed values were made of. versions has the results of converting an object. The
	// keys of both come from the live object.
	objects  map[*typed.TypedValue]runtime.Object
	versions map[runtime.Object]map[schema.GroupVersion]conversion
}

// conversion is the result of converting an object.
type conversion struct {
	obj runtime.Object
	err error
}

// newMemo returns the memo of one request, which one goroutine uses. The entry of live in versions marks live as the
// object whose conversions are kept.
func newMemo(c converter, types managedfields.TypeConverter, live runtime.Object) *memo {
	return &memo{
		converter: c,
		types:     types,
		objects:   map[*typed.TypedValue]runtime.Object{},
		versions:  map[runtime.Object]map[schema.GroupVersion]conversion{live: {}},
	}
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (m *memo) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	made, ofLive := m.versions[in]
	to, ok := target.(schema.GroupVersion)
	if !ofLive || !ok {
		return m.converter.ConvertToVersion(in, target)
	}
	if c, ok := made[to]; ok {
		return c.obj, c.err
	}
	out, err := m.converter.ConvertToVersion(in, target)
	made[to] = conversion{out, err}
	// A converted object may be converted on to a third version, and that result is shared as well. Objects that the
	// library makes by merging are not in the map, and are converted every time.
	if err == nil && m.versions[out] == nil {
		m.versions[out] = map[schema.GroupVersion]conversion{}
	}
	return out, err
}

// ObjectToTyped implements managedfields.TypeConverter. It leaves out managedFields, which nobody owns and which may be
// most of the object.
//
// The typed value refers to the object's memory. TypedToObject therefore finds the way back without a conversion, as
// long as the library hands the same pointer in.
func (m *memo) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	out, err := m.types.ObjectToTyped(withoutFields(obj), opts...)
	if _, ofLive := m.versions[obj]; ofLive && err == nil {
		m.objects[out] = obj
	}
	return out, err
}

// TypedToObject implements managedfields.TypeConverter.
func (m *memo) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	if obj := m.objects[value]; obj != nil {
		return obj, nil
	}
	return m.types.TypedToObject(value)
}

// withoutFields returns obj without managedFields: obj itself if it has none, else a shallow copy.
//
// A shallow copy is enough, since only metadata is replaced. The live object itself must keep its entries: the library
// reads them from it.
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

// without returns a copy of a map without a key.
func without(m map[string]any, key string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}
