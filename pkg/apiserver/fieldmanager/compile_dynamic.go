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

// compileDynamic compiles the type of objects without a Go type. It returns nil for versions without a usable schema.
//
// It compiles from the published OpenAPI form of the version, as the library's converter does, and not from the
// structural schema: both engines must split values at the same places.
func (m *Manager) compileDynamic(w writeTarget) *typeNode {
	for _, v := range w.row.ServedVersions() {
		if v.Name != w.version || v.Schema == nil {
			continue
		}
		b := openapi.NewBuilder(m.schemas.scheme, openapi.V3)
		ref, err := b.AddDynamic(w.gvk(), v.Schema)
		if err != nil {
			return nil // the library deduces types then
		}
		types, err := schemaconv.ToSchemaFromOpenAPI(pointers(b.Definitions()), false)
		if err != nil {
			return nil
		}
		// The reference is "#/components/schemas/<name>", and schemaconv names types by the last part.
		name := ref.Ref.GetURL().Fragment
		name = name[strings.LastIndexByte(name, '/')+1:]
		out, err := newCompiler(types, w).dynamicType(schema.TypeRef{NamedType: &name}, nil)
		if err != nil {
			m.log.Debug("managed fields are compared by the library", "kind", w.gvk(), "err", err)
			return nil
		}
		return out
	}
	return nil
}

// deducedType is schemaconv's name for the type of values without a schema.
const deducedType = "__untyped_deduced_"

// dynamicType returns the node of values without a Go type. It needs no memory of types that it compiled, because the
// schema of a custom resource does not contain itself.
func (c *compiler) dynamicType(ref schema.TypeRef, path fieldpath.Path) (*typeNode, error) {
	atom, ok := c.schema.Resolve(ref)
	if !ok {
		return nil, fmt.Errorf("%s has no schema", path)
	}
	out := &typeNode{dynamic: true}
	if ref.NamedType != nil && *ref.NamedType == deducedType {
		out.shape, out.element = deduced, out
		return out, nil
	}
	if !splits(atom) {
		return out, nil
	}
	return out, c.dynamicParts(out, atom, path)
}

// dynamicParts compiles the parts of a dynamic type that splits.
func (c *compiler) dynamicParts(out *typeNode, atom schema.Atom, path fieldpath.Path) error {
	m, l := atom.Map, atom.List
	switch {
	case atom.Scalar != nil && m != nil && len(m.Fields) == 0 && (l == nil || l.ElementRelationship == schema.Atomic):
		out.shape = deduced // x-kubernetes-int-or-string, whose schema allows any value
		return c.elements(out, nil, m.ElementType, path)
	// The shape depends on the value, so the library decides.
	case atom.Scalar != nil || m != nil && l != nil:
		return fmt.Errorf("%s may be of several types", path)
	case m != nil && m.ElementType != (schema.TypeRef{}):
		// Both at once comes from x-kubernetes-preserve-unknown-fields beside properties: one node would need the rules
		// of a structure and of a map.
		if len(m.Fields) > 0 {
			return fmt.Errorf("%s has fields with and without a schema", path)
		}
		out.shape = granularMap
		return c.elements(out, nil, m.ElementType, path)
	case m != nil:
		return c.structure(out, m, dynamicMembers(m), path)
	case l.ElementRelationship != schema.Associative:
		return fmt.Errorf("%s is a list of another kind", path)
	}
	out.shape = setList
	if len(l.Keys) > 0 {
		if err := c.keyed(out, l, keyAccessor, path); err != nil {
			return err
		}
	}
	return c.elements(out, nil, l.ElementType, path)
}

// keyAccessor reads a field of a map that stands for a struct. Every such map can have every field. A missing field is
// simply missing in the map: dynamic values know no omitempty.
func keyAccessor(name string) (accessor, bool) { return accessor{key: reflect.ValueOf(name)}, true }

// dynamicMembers are the fields that a schema names.
func dynamicMembers(m *schema.Map) []member {
	out := make([]member, 0, len(m.Fields))
	for _, f := range m.Fields {
		a, _ := keyAccessor(f.Name)
		out = append(out, member{name: f.Name, accessor: a})
	}
	slices.SortFunc(out, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return out
}
