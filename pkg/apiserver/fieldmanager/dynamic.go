package fieldmanager

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/schemaconv"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"bonsai/api/openapi"
)

// newDynamicComparer makes the comparer of objects of no Go type. It is nil for versions without a schema.
func (m *Manager) newDynamicComparer(w writes) (*comparer, error) {
	gvk := w.row.GVK.GroupKind().WithVersion(w.version)
	for _, v := range w.row.ServedVersions() {
		if v.Name != w.version || v.Schema == nil {
			continue
		}
		b := openapi.NewBuilder(m.schemas.scheme, openapi.V3)
		ref, err := b.AddDynamic(gvk, v.Schema)
		if err != nil {
			return nil, nil // the library deduces types then
		}
		types, err := schemaconv.ToSchemaFromOpenAPI(pointers(b.Definitions()), false)
		if err != nil {
			return nil, nil
		}
		c := &compiler{schema: types, without: setOf(append(nobodys(), resets(w.row, w.subresource)...))}
		name := ref.Ref.GetURL().Fragment
		name = name[strings.LastIndexByte(name, '/')+1:]
		out, err := c.dynamic(schema.TypeRef{NamedType: &name}, nil)
		if err != nil {
			m.log.Debug("managed fields are compared the long way", "kind", gvk, "err", err)
			return nil, nil
		}
		return out, nil
	}
	return nil, nil
}

// deducedType is what schemaconv calls the type of what has no schema.
const deducedType = "__untyped_deduced_"

// dynamic returns the comparer of values of no Go type whose schema is ref. A schema of custom resources does not contain itself.
func (c *compiler) dynamic(ref schema.TypeRef, path fieldpath.Path) (*comparer, error) {
	atom, ok := c.schema.Resolve(ref)
	if !ok {
		return nil, fmt.Errorf("%s has no schema", path)
	}
	out := &comparer{dynamic: true}
	if ref.NamedType != nil && *ref.NamedType == deducedType {
		out.form, out.element = deduced, out
		return out, nil
	}
	m, l := atom.Map, atom.List
	splits := m != nil && m.ElementRelationship != schema.Atomic || l != nil && l.ElementRelationship != schema.Atomic
	switch {
	case !splits:
		return out, nil
	case atom.Scalar != nil && m != nil && len(m.Fields) == 0 && (l == nil || l.ElementRelationship == schema.Atomic):
		out.form = deduced // as an integer or a string is: it has no one type
		return out, c.dynamicElements(out, m.ElementType, path)
	case atom.Scalar != nil || m != nil && l != nil:
		return nil, fmt.Errorf("%s may be of several types", path)
	case m != nil && m.ElementType != (schema.TypeRef{}):
		if len(m.Fields) > 0 {
			return nil, fmt.Errorf("%s has fields with and without a schema", path)
		}
		out.form = granular
		return out, c.dynamicElements(out, m.ElementType, path)
	case m != nil:
		return out, c.dynamicStructure(out, m, path)
	case l.ElementRelationship != schema.Associative:
		return nil, fmt.Errorf("%s is a list of another kind", path)
	}
	if out.form = set; len(l.Keys) > 0 {
		out.form = keyed
	}
	for _, name := range l.Keys {
		element, ok := c.schema.Resolve(l.ElementType)
		if !ok || element.Map == nil {
			return nil, fmt.Errorf("%s is a list with keys of what has none", path)
		}
		field, _ := element.Map.FindField(name)
		out.keys = append(out.keys, keyField{name, place{key: reflect.ValueOf(name)}, field.Default})
	}
	return out, c.dynamicElements(out, l.ElementType, path)
}

func (c *compiler) dynamicElements(out *comparer, ref schema.TypeRef, path fieldpath.Path) (err error) {
	any := "*"
	out.element, err = c.dynamic(ref, append(path.Copy(), fieldpath.PathElement{FieldName: &any}))
	return err
}

func (c *compiler) dynamicStructure(out *comparer, m *schema.Map, path fieldpath.Path) error {
	out.form = structure
	fields := slices.Clone(m.Fields)
	slices.SortFunc(fields, func(a, b schema.StructField) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range fields {
		element := fieldpath.PathElement{FieldName: &f.Name}
		at := append(path.Copy(), element)
		if c.without.Has(at) {
			out.without = append(out.without, place{key: reflect.ValueOf(f.Name)})
			continue
		}
		inner, err := c.dynamic(f.Type, at)
		if err != nil {
			return err
		}
		name, err := appendName(nil, element)
		if err != nil {
			return fmt.Errorf("%s has a name that JSON must escape", at)
		}
		out.fields = append(out.fields, fieldComparer{inner, place{key: reflect.ValueOf(f.Name)}, element, name})
	}
	return nil
}
