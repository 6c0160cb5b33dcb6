package fieldmanager

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"bonsai/api/resources"
)

// Merge returns live, of the given kind (the row's in one of its versions, or one of its subresources'), with config merged in. Nobody
// comes to own anything by it. A config that touches a list, map or struct that is replaced as a whole is refused: who writes it
// cannot know what he would take away.
func (m *Manager) Merge(row *resources.Row, kind schema.GroupVersionKind, live runtime.Object, config map[string]any) (map[string]any, error) {
	types, err := m.typesOf(row, kind)
	if err != nil {
		return nil, err
	}
	was, err := types.ObjectToTyped(live)
	if err != nil {
		return nil, fmt.Errorf("failed to convert original object to typed object: %w", err)
	}
	with, err := types.ObjectToTyped(&unstructured.Unstructured{Object: config})
	if err != nil {
		return nil, fmt.Errorf("failed to convert patch object to typed object: %w", err)
	}
	if whole := atomics(with); len(whole) > 0 {
		return nil, fmt.Errorf("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %s", strings.Join(whole, ", "))
	}
	out, err := was.Merge(with)
	if err != nil {
		return nil, fmt.Errorf("failed to merge patch: %w", err)
	}
	obj, err := types.TypedToObject(out)
	if err != nil {
		return nil, err
	}
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// typesOf are the row's; the kind of a subresource has its own, which are few and small and not kept.
func (m *Manager) typesOf(row *resources.Row, kind schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	if slices.Contains(kinds(row), kind) {
		return m.schemas.converter(row)
	}
	defs, err := m.schemas.definitions([]schema.GroupVersionKind{kind})
	if err != nil {
		return nil, err
	}
	return managedfields.NewTypeConverter(defs, false)
}

// atomics are the paths in v of what is replaced as a whole.
func atomics(v *typed.TypedValue) []string {
	w := atomicWalk{schema: v.Schema()}
	w.visit(v.TypeRef(), v.AsValue(), nil)
	return w.found
}

type atomicWalk struct {
	schema *smd.Schema
	found  []string
}

func (w *atomicWalk) visit(ref smd.TypeRef, v value.Value, path fieldpath.Path) {
	atom, ok := w.schema.Resolve(ref)
	if !ok || v == nil || v.IsNull() {
		return
	}
	switch {
	case v.IsMap() && atom.Map != nil:
		if atom.Map.ElementRelationship == smd.Atomic {
			w.found = append(w.found, path.String())
			return
		}
		v.AsMap().Iterate(func(name string, field value.Value) bool {
			of := atom.Map.ElementType
			if f, ok := atom.Map.FindField(name); ok {
				of = f.Type
			}
			w.visit(of, field, append(path[:len(path):len(path)], fieldpath.PathElement{FieldName: &name}))
			return true
		})
	case v.IsList() && atom.List != nil:
		if atom.List.ElementRelationship == smd.Atomic {
			w.found = append(w.found, path.String())
			return
		}
		list := v.AsList()
		for i := range list.Length() {
			w.visit(atom.List.ElementType, list.At(i), append(path[:len(path):len(path)], fieldpath.PathElement{Index: &i}))
		}
	}
}
