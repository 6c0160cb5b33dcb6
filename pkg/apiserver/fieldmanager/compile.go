package fieldmanager

import (
	"fmt"
	"reflect"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// comparer compares the values of one Go type as the schema of the type says. It is made once for a kind.
type comparer struct {
	form form
	// zero is the type's zero value, if the comparer is that of a kind's Go type.
	zero reflect.Value
	// own tells that the JSON of a leaf is not that of its Go kind.
	own bool
	// fields are those of a structure, in the order of their names, but for those that nobody owns.
	fields  []fieldComparer
	without []place
	// dynamic tells that values are of no Go type: maps, lists and scalars of decoded JSON, which may not fit the schema.
	dynamic bool
	// element compares the values of a map, or the elements of a list.
	element *comparer
	// keys tell the elements of a keyed list apart.
	keys []keyField
}

type form int

const (
	leaf      form = iota // compared as a whole: a scalar, an atomic list, map or struct
	structure             // a struct, field by field
	granular              // a map, value by value
	keyed                 // a list of structs, each with its keys
	set                   // a list of strings or whole numbers, each its own key
	deduced               // of no schema: granular if it is a map, else a leaf
)

// place is where a field is: in a struct, or in a map under a key.
type place struct {
	entry *value.FieldCacheEntry
	key   reflect.Value
}

type fieldComparer struct {
	*comparer
	place
	element fieldpath.PathElement
	// name is the field's in a set's JSON, with the colon.
	name []byte
}

// keyField is a field of an element that is part of its key.
type keyField struct {
	name string
	place
	// implied is the key of an element that does not give it; nil: the element goes without.
	implied any
}

// compiler makes comparers from a schema.
type compiler struct {
	schema *schema.Schema
	// without are the paths that are left out, with all below them; none is longer than two.
	without *fieldpath.Set
	made    map[compiled]*comparer
}

// compiled is a Go type under a name and relationship of the schema.
type compiled struct {
	reflect.Type
	name, relationship string
}

// newComparer makes the comparer of a kind in one version. It is nil for objects whose schema does not fit them, or is beyond
// comparers.
func (m *Manager) newComparer(w writes) (*comparer, error) {
	if dynamic(w.row) {
		return m.newDynamicComparer(w)
	}
	gvk := w.row.GVK.GroupKind().WithVersion(w.version)
	obj, err := converter{row: w.row}.New(gvk)
	if err != nil {
		return nil, err
	}
	t := reflect.TypeOf(obj).Elem()
	types, ref, err := m.schemas.of(gvk, t)
	if err != nil {
		return nil, err
	}
	c := &compiler{schema: types, without: setOf(append(nobodys(), resets(w.row, w.subresource)...)), made: map[compiled]*comparer{}}
	out, err := c.compile(t, ref, nil)
	if err != nil {
		m.log.Debug("managed fields are compared the long way", "kind", gvk, "err", err)
		return nil, nil
	}
	out.zero = reflect.Zero(t)
	return out, nil
}

// compile returns the comparer of t, whose schema is ref, at a path. An error is for types that the library must compare.
func (c *compiler) compile(t reflect.Type, ref schema.TypeRef, path fieldpath.Path) (*comparer, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	atom, ok := c.schema.Resolve(ref)
	if !ok {
		return nil, fmt.Errorf("%s has no schema", path)
	}
	splits := atom.Map != nil && atom.Map.ElementRelationship != schema.Atomic || atom.List != nil && atom.List.ElementRelationship != schema.Atomic
	if value.TypeReflectEntryOf(t).CanConvertToUnstructured() {
		if splits && !isScalar(t) {
			return nil, fmt.Errorf("%s is a %s, which makes its own JSON", path, t)
		}
		return &comparer{own: true}, nil
	}
	out := &comparer{}
	// Types may hold themselves: below what can be left out, each has one comparer.
	if key := (compiled{Type: t}); ref.NamedType != nil && len(path) >= 2 {
		key.name = *ref.NamedType
		if ref.ElementRelationship != nil {
			key.relationship = string(*ref.ElementRelationship)
		}
		if made := c.made[key]; made != nil {
			return made, nil
		}
		c.made[key] = out
	}
	switch {
	case !splits:
		out.own = t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
		return out, nil
	case t.Kind() == reflect.Struct && atom.Map != nil:
		return out, c.structure(out, t, atom.Map, path)
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String && atom.Map != nil:
		out.form = granular
		return out, c.elements(out, t, atom.Map.ElementType, path)
	case t.Kind() == reflect.Slice && atom.List != nil && atom.List.ElementRelationship == schema.Associative:
		return out, c.list(out, t, atom.List, path)
	}
	return nil, fmt.Errorf("%s is a %s, which does not fit its schema", path, t)
}

// isScalar is for types whose JSON is a number or a string, although that is not all that the schema allows.
func isScalar(t reflect.Type) bool {
	v, ok := reflect.New(t).Interface().(interface{ OpenAPIV3OneOfTypes() []string })
	return ok && len(v.OpenAPIV3OneOfTypes()) > 0
}

func (c *compiler) structure(out *comparer, t reflect.Type, m *schema.Map, path fieldpath.Path) error {
	out.form = structure
	for _, entry := range value.TypeReflectEntryOf(t).OrderedFields() {
		element := fieldpath.PathElement{FieldName: &entry.JsonName}
		at := append(path.Copy(), element)
		if c.without.Has(at) {
			out.without = append(out.without, place{entry: entry})
			continue
		}
		field, ok := m.FindField(entry.JsonName)
		if !ok {
			return fmt.Errorf("%s has no schema", at)
		}
		inner, err := c.compile(entry.GetFrom(reflect.Zero(t)).Type(), field.Type, at)
		if err != nil {
			return err
		}
		name, err := appendName(nil, element)
		if err != nil {
			return err
		}
		out.fields = append(out.fields, fieldComparer{inner, place{entry: entry}, element, name})
	}
	return nil
}

func (c *compiler) elements(out *comparer, t reflect.Type, ref schema.TypeRef, path fieldpath.Path) (err error) {
	any := "*"
	out.element, err = c.compile(t.Elem(), ref, append(path.Copy(), fieldpath.PathElement{FieldName: &any}))
	return err
}

func (c *compiler) list(out *comparer, t reflect.Type, l *schema.List, path fieldpath.Path) error {
	if len(l.Keys) == 0 {
		if t.Elem().Kind() != reflect.String {
			return fmt.Errorf("%s is a set of %s", path, t.Elem())
		}
		out.form = set
		return c.elements(out, t, l.ElementType, path)
	}
	atom, ok := c.schema.Resolve(l.ElementType)
	if !ok || atom.Map == nil || t.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("%s is a list with keys of %s", path, t.Elem())
	}
	out.form = keyed
	entries := value.TypeReflectEntryOf(t.Elem()).Fields()
	for _, name := range l.Keys {
		field, _ := atom.Map.FindField(name)
		if entries[name] == nil {
			return fmt.Errorf("%s has no key %s", path, name)
		}
		out.keys = append(out.keys, keyField{name, place{entry: entries[name]}, field.Default})
	}
	return c.elements(out, t, l.ElementType, path)
}
