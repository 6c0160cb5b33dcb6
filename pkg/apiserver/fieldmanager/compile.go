package fieldmanager

import (
	"fmt"
	"reflect"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// compileType compiles the type of a kind in one version. It returns nil if the schema does not fit the objects, or has
// types that the fast path cannot compare. The library then serves all writes of the kind.
//
// The cache keeps nil like any result, so a kind that does not compile costs one attempt per period. Errors are kept as
// well: they come from the schema, and trying again would not help.
func (m *Manager) compileType(w writeTarget) (*typeNode, error) {
	if dynamic(w.row) {
		return m.compileDynamic(w), nil
	}
	obj, err := converter{row: w.row}.New(w.gvk())
	if err != nil {
		return nil, err
	}
	t := reflect.TypeOf(obj).Elem()
	types, ref, err := m.schemas.of(w.gvk(), t)
	if err != nil {
		return nil, err
	}
	out, err := newCompiler(types, w).compile(t, ref, nil)
	if err != nil {
		// Not an error: the library gives the same answers, only slower.
		m.log.Debug("managed fields are compared by the library", "kind", w.gvk(), "err", err)
		return nil, nil
	}
	// A new object is compared with the zero struct, not with nothing: fields that JSON never omits are then not new by
	// themselves.
	out.zero = reflect.Zero(t)
	return out, nil
}

// compiler compiles the types of one schema. Go types (compile_go.go) and dynamic types, which have no Go type
// (compile_dynamic.go), differ in how they determine a shape. What is below a shape is compiled here for both, with a
// nil reflect.Type for dynamic types.
type compiler struct {
	schema *schema.Schema
	// unowned are the paths of fields that no manager owns; none is longer than two elements.
	unowned *fieldpath.Set
	// made also ends the recursion of types that contain themselves: a node is in it before the types below it are
	// compiled.
	made map[typeKey]*typeNode
}

// typeKey identifies a node that types below it may refer to: a Go type under a name and relationship of the schema.
// The relationship belongs to the key because a reference may override it: the same named type can be atomic in one
// field and granular in another.
type typeKey struct {
	reflect.Type
	name, relationship string
}

// Both kinds of unowned fields are treated alike although they have different reasons: nobody may own the stripped
// fields, and a writer through this subresource cannot change the reset ones. The subresource is therefore part of the
// cache's key (targetKey).
func newCompiler(types *schema.Schema, w writeTarget) *compiler {
	unowned := pathSet(append(strippedFields(), resetFields(w.row, w.subresource)...))
	return &compiler{schema: types, unowned: unowned, made: map[typeKey]*typeNode{}}
}

// compile returns the node of the type at path, whose schema is ref. t is nil for a dynamic type. It returns an error
// for types that need the library.
func (c *compiler) compile(t reflect.Type, ref schema.TypeRef, path fieldpath.Path) (*typeNode, error) {
	if t == nil {
		return c.dynamicType(ref, path)
	}
	return c.goType(t, ref, path)
}

// splits reports whether values of the type have parts that managers own separately.
func splits(atom schema.Atom) bool {
	return atom.Map != nil && atom.Map.ElementRelationship != schema.Atomic ||
		atom.List != nil && atom.List.ElementRelationship != schema.Atomic
}

// member is a field of a structure before its type is compiled.
type member struct {
	name string
	accessor
	typ reflect.Type
}

// structure makes out a structure with these members, which are in the order of their names.
func (c *compiler) structure(out *typeNode, m *schema.Map, members []member, path fieldpath.Path) error {
	out.shape = structure
	for _, f := range members {
		// The library's path elements point to their names.
		name := f.name
		element := fieldpath.PathElement{FieldName: &name}
		at := append(path.Copy(), element)
		if c.unowned.Has(at) {
			out.unowned = append(out.unowned, f.accessor)
			continue
		}
		field, ok := m.FindField(name)
		if !ok {
			// Go types and schemas are generated from the same source, so this is rare. What such a field means is for
			// the library to decide.
			return fmt.Errorf("%s has no schema", at)
		}
		below, err := c.compile(f.typ, field.Type, at)
		if err != nil {
			return err
		}
		// The spelling in JSON is made once here, and not in every write.
		encoded, err := appendName(nil, element)
		if err != nil {
			return fmt.Errorf("%s has a name that JSON must escape", at)
		}
		out.fields = append(out.fields, structField{below, f.accessor, element, encoded})
	}
	return nil
}

// elements compiles the type of a map's values or a list's elements.
func (c *compiler) elements(out *typeNode, t reflect.Type, ref schema.TypeRef, path fieldpath.Path) (err error) {
	// All elements share one node, whatever their path. "*" appears only in errors, and keeps the path longer than
	// those of unowned fields.
	any := "*"
	out.element, err = c.compile(t, ref, append(path.Copy(), fieldpath.PathElement{FieldName: &any}))
	return err
}

// keyed makes out a list with keys. access returns the accessor of a key by its name, and false for an element that
// cannot have such a field.
func (c *compiler) keyed(
	out *typeNode, l *schema.List, access func(name string) (accessor, bool), path fieldpath.Path,
) error {
	out.shape = keyedList
	element, ok := c.schema.Resolve(l.ElementType)
	if !ok || element.Map == nil {
		return fmt.Errorf("%s is a list with keys whose elements have no fields", path)
	}
	for _, name := range l.Keys {
		a, ok := access(name)
		if !ok {
			return fmt.Errorf("%s has no key %s", path, name)
		}
		// A key without a schema has no default: field is then the zero value.
		field, _ := element.Map.FindField(name)
		out.keys = append(out.keys, keyField{name, a, field.Default})
	}
	return nil
}
