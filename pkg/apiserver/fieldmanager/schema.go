package fieldmanager

import (
	"fmt"
	"reflect"
	"time"
	"weak"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"bonsai/api/openapi"
	"bonsai/api/resources"
)

// schemas builds schemas from the definitions of the published OpenAPI documents, for one kind at a time: a process
// uses few of all kinds. The definitions are the published ones, so that clients such as kubectl, which read the same
// documents, agree with the server about list types and keys.
type schemas struct {
	scheme *runtime.Scheme
	// The key is weak, so that the cache does not keep the row of a deleted CustomResourceDefinition alive. All
	// versions of a row share one converter, because the library converts between them.
	converters *cache[weak.Pointer[resources.Row], managedfields.TypeConverter]
}

func newSchemas(scheme *runtime.Scheme, keep time.Duration) *schemas {
	converters := newCache[weak.Pointer[resources.Row], managedfields.TypeConverter](keep)
	return &schemas{scheme: scheme, converters: converters}
}

// kinds returns the row's stored kind, then its kinds in other versions. The stored version comes first because rows
// need not serve it, and the library converts through it.
func kinds(row *resources.Row) []schema.GroupVersionKind {
	out := []schema.GroupVersionKind{row.StoredGVK()}
	for _, v := range row.ServedVersions() {
		if gvk := row.GVK.GroupKind().WithVersion(v.Name); gvk != out[0] {
			out = append(out, gvk)
		}
	}
	return out
}

// definitions returns the OpenAPI definitions of some kinds and of all types that they refer to.
func (s *schemas) definitions(kinds []schema.GroupVersionKind) (map[string]*spec.Schema, error) {
	b := openapi.NewBuilder(s.scheme, openapi.V3)
	for _, gvk := range kinds {
		if _, err := b.Add(gvk); err != nil {
			return nil, err
		}
	}
	return pointers(b.Definitions()), nil
}

// pointers returns definitions in the form that schemaconv and the library take.
func pointers(defs map[string]spec.Schema) map[string]*spec.Schema {
	out := make(map[string]*spec.Schema, len(defs))
	for name, d := range defs {
		out[name] = &d
	}
	return out
}

// dynamic reports whether a row's objects have no Go type, as those of CustomResourceDefinitions. It makes an object to
// find out, which is cheap, and needs no second record of the fact in the row.
func dynamic(row *resources.Row) bool {
	_, ok := row.New().(runtime.Unstructured)
	return ok
}

// converter returns what the library needs to make typed values of a row's objects, in all versions.
func (s *schemas) converter(row *resources.Row) (managedfields.TypeConverter, error) {
	return s.converters.get(weak.Make(row), func() (managedfields.TypeConverter, error) {
		if dynamic(row) {
			return s.dynamicConverter(row), nil
		}
		defs, err := s.definitions(kinds(row))
		if err != nil {
			return nil, err
		}
		c, err := managedfields.NewTypeConverter(defs, false)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", row.GVK, err)
		}
		return c, nil
	})
}

// dynamicConverter returns the converter of objects without a Go type. If a version has no usable schema, the library
// deduces types from the objects, and all lists are atomic.
//
// One bad version is enough to deduce all, because entries of different versions must be comparable. With deduced types
// a list is one value with one owner: an apply then replaces it as a whole, as upstream does for schemas that it cannot
// use.
func (s *schemas) dynamicConverter(row *resources.Row) managedfields.TypeConverter {
	b := openapi.NewBuilder(s.scheme, openapi.V3)
	for _, v := range row.ServedVersions() {
		if v.Schema == nil {
			return managedfields.NewDeducedTypeConverter()
		}
		if _, err := b.AddDynamic(row.GVK.GroupKind().WithVersion(v.Name), v.Schema); err != nil {
			return managedfields.NewDeducedTypeConverter()
		}
	}
	c, err := managedfields.NewTypeConverter(pointers(b.Definitions()), false)
	if err != nil {
		return managedfields.NewDeducedTypeConverter()
	}
	return c
}

// of returns the schema of one kind, and the reference to its type, for a compiler. The schema is not kept: the
// compiled type needs a fraction of its memory.
func (s *schemas) of(gvk schema.GroupVersionKind, t reflect.Type) (*smd.Schema, smd.TypeRef, error) {
	defs, err := s.definitions([]schema.GroupVersionKind{gvk})
	if err != nil {
		return nil, smd.TypeRef{}, err
	}
	out, err := schemaconv.ToSchemaFromOpenAPI(defs, false)
	if err != nil {
		return nil, smd.TypeRef{}, fmt.Errorf("schema of %s: %w", gvk, err)
	}
	name := openapi.Name(t)
	return out, smd.TypeRef{NamedType: &name}, nil
}
