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

// schemas are made of the same definitions as the published documents, for one kind at a time.
type schemas struct {
	scheme     *runtime.Scheme
	converters *kept[weak.Pointer[resources.Row], managedfields.TypeConverter]
}

func newSchemas(scheme *runtime.Scheme, keep time.Duration) *schemas {
	return &schemas{scheme: scheme, converters: newKept[weak.Pointer[resources.Row], managedfields.TypeConverter](keep)}
}

// kinds are all versions of a row, and its stored kind.
func kinds(row *resources.Row) []schema.GroupVersionKind {
	out := []schema.GroupVersionKind{row.StoredGVK()}
	for _, v := range row.ServedVersions() {
		if gvk := row.GVK.GroupKind().WithVersion(v.Name); gvk != out[0] {
			out = append(out, gvk)
		}
	}
	return out
}

func (s *schemas) definitions(kinds []schema.GroupVersionKind) (map[string]*spec.Schema, error) {
	b := openapi.NewBuilder(s.scheme, openapi.V3)
	for _, gvk := range kinds {
		if _, err := b.Add(gvk); err != nil {
			return nil, err
		}
	}
	return pointers(b.Definitions()), nil
}

func pointers(defs map[string]spec.Schema) map[string]*spec.Schema {
	out := make(map[string]*spec.Schema, len(defs))
	for name, d := range defs {
		out[name] = &d
	}
	return out
}

// dynamic tells whether a row's objects are of no Go type.
func dynamic(row *resources.Row) bool {
	_, ok := row.New().(runtime.Unstructured)
	return ok
}

// converter is what the library needs.
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

// dynamicConverter is for objects of no Go type. Where a version has no schema, or one that does not say enough, all lists are
// atomic.
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

// of is the schema of one kind, and the reference to it, for a comparer. It is not kept.
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
