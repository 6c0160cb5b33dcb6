package fieldmanager

import (
	"fmt"
	"reflect"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// goType returns the node of values of a Go type.
//
// The Go type and the schema must agree at every step. Where they do not, the schema is right and the Go walk would
// split values at the wrong places, so the kind goes to the library.
func (c *compiler) goType(t reflect.Type, ref schema.TypeRef, path fieldpath.Path) (*typeNode, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	atom, ok := c.schema.Resolve(ref)
	if !ok {
		return nil, fmt.Errorf("%s has no schema", path)
	}
	if value.TypeReflectEntryOf(t).CanConvertToUnstructured() {
		if splits(atom) && !isScalar(t) {
			// A type with a MarshalJSON of its own may have any fields in its JSON, which a walk of the Go struct
			// cannot see.
			return nil, fmt.Errorf("%s is a %s, which makes its own JSON", path, t)
		}
		return &typeNode{customJSON: true}, nil
	}
	out := &typeNode{}
	// Types may contain themselves, as JSONSchemaProps does, so each has one node. The root and its direct fields have
	// nodes of their own, because unowned fields make them differ from the same type elsewhere.
	if key := (typeKey{Type: t}); ref.NamedType != nil && len(path) >= 2 {
		key.name = *ref.NamedType
		if ref.ElementRelationship != nil {
			key.relationship = string(*ref.ElementRelationship)
		}
		if made := c.made[key]; made != nil {
			return made, nil
		}
		c.made[key] = out
	}
	// The struct, list or map is one value. Its parts need no nodes, since equal compares it as a whole.
	if !splits(atom) {
		out.customJSON = t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 // base64
		return out, nil
	}
	return out, c.goParts(out, t, atom, path)
}

// goParts compiles the parts of a Go type that splits.
//
// Atomic lists, maps and structs do not come here (splits).
func (c *compiler) goParts(out *typeNode, t reflect.Type, atom schema.Atom, path fieldpath.Path) error {
	switch {
	case t.Kind() == reflect.Struct && atom.Map != nil:
		return c.structure(out, atom.Map, goMembers(t), path)
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String && atom.Map != nil:
		out.shape = granularMap
		return c.elements(out, t.Elem(), atom.Map.ElementType, path)
	case t.Kind() == reflect.Slice && atom.List != nil && atom.List.ElementRelationship == schema.Associative:
		if err := c.goList(out, t, atom.List, path); err != nil {
			return err
		}
		return c.elements(out, t.Elem(), atom.List.ElementType, path)
	}
	return fmt.Errorf("%s is a %s, which does not fit its schema", path, t)
}

// Sets of Go types have strings only; dynamic types also have sets of integers. The elements of a keyed list must be
// structs, because accessors read the keys.
func (c *compiler) goList(out *typeNode, t reflect.Type, l *schema.List, path fieldpath.Path) error {
	if len(l.Keys) == 0 {
		if t.Elem().Kind() != reflect.String {
			return fmt.Errorf("%s is a set of %s", path, t.Elem())
		}
		out.shape = setList
		return nil
	}
	if t.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("%s is a list with keys of %s", path, t.Elem())
	}
	entries := value.TypeReflectEntryOf(t.Elem()).Fields()
	return c.keyed(out, l, func(name string) (accessor, bool) {
		return accessor{entry: entries[name]}, entries[name] != nil
	}, path)
}

// goMembers are the fields of a struct as its JSON has them. The order is that of the JSON names. The library keeps the
// type of a field private, so it is read from the zero struct.
func goMembers(t reflect.Type) []member {
	entries := value.TypeReflectEntryOf(t).OrderedFields()
	out := make([]member, 0, len(entries))
	for _, entry := range entries {
		out = append(out, member{entry.JsonName, accessor{entry: entry}, entry.GetFrom(reflect.Zero(t)).Type()})
	}
	return out
}

// isScalar reports whether the JSON of t is a number or a string although its schema allows more, as for IntOrString.
func isScalar(t reflect.Type) bool {
	v, ok := reflect.New(t).Interface().(interface{ OpenAPIV3OneOfTypes() []string })
	return ok && len(v.OpenAPIV3OneOfTypes()) > 0
}
