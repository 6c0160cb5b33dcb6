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

// Merge returns live with config merged in. kind is the row's in one of its versions, or one of its subresources'. The
// result changes no manager's fields. Merge refuses a config that touches an atomic list, map or struct: the client
// cannot know what the config would remove from it.
//
// Mutating admission policies call it (KEP-3962) for each ApplyConfiguration, on the goroutine of the request. It needs
// no fast path, because few writes meet such a policy. The words of the errors are upstream's, since policy authors see
// them.
func (m *Manager) Merge(
	row *resources.Row, kind schema.GroupVersionKind, live runtime.Object, config map[string]any,
) (map[string]any, error) {
	types, err := m.converterOf(row, kind)
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
	if paths := atomicPaths(with); len(paths) > 0 {
		return nil, fmt.Errorf("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %s",
			strings.Join(paths, ", "))
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

// converterOf returns the converter of a kind to typed values: the row's, or one for the kind of a subresource, such as
// Scale. Those are small and rarely used, so they are not kept.
func (m *Manager) converterOf(row *resources.Row, kind schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	if slices.Contains(kinds(row), kind) {
		return m.schemas.converter(row)
	}
	defs, err := m.schemas.definitions([]schema.GroupVersionKind{kind})
	if err != nil {
		return nil, err
	}
	return managedfields.NewTypeConverter(defs, false)
}

// atomicPaths returns the paths of the atomic lists, maps and structs in v.
func atomicPaths(v *typed.TypedValue) []string {
	w := atomicWalk{schema: v.Schema()}
	w.visit(v.TypeRef(), v.AsValue(), nil)
	return w.found
}

// atomicWalk walks a typed value by its schema. It does not use typeNode, because it must find atomic parts in values
// of every type, and typeNode leaves some types to the library.
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
		// An atomic value is found once, as a whole. What is below it does not matter.
		if atom.Map.ElementRelationship == smd.Atomic {
			w.found = append(w.found, path.String())
			return
		}
		v.AsMap().Iterate(func(name string, field value.Value) bool {
			of := atom.Map.ElementType
			if f, ok := atom.Map.FindField(name); ok {
				of = f.Type
			}
			w.visit(of, field, below(path, fieldpath.PathElement{FieldName: &name}))
			return true
		})
	case v.IsList() && atom.List != nil:
		if atom.List.ElementRelationship == smd.Atomic {
			w.found = append(w.found, path.String())
			return
		}
		list := v.AsList()
		for i := range list.Length() {
			w.visit(atom.List.ElementType, list.At(i), below(path, fieldpath.PathElement{Index: &i}))
		}
	}
}

// below returns a new path, which shares no memory with those of its siblings.
func below(path fieldpath.Path, element fieldpath.PathElement) fieldpath.Path {
	return append(path[:len(path):len(path)], element)
}
