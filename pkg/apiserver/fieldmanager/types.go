package fieldmanager

import (
	"reflect"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// typeNode is a type of values, compiled once for a kind from its schema and its Go type (compiler). It knows where a
// value splits into parts that managers own separately. It does not change once it is compiled, and serves any number
// of goroutines. Types that contain themselves are graphs with cycles.
//
// Dynamic nodes need checks that Go nodes do not: Go's type system has already refused a string where a list belongs,
// while a stored custom resource may be older than its schema (shapeOf).
type typeNode struct {
	// The zero value, atomic, is the safe one: a type that nothing splits is one value with one owner.
	shape shape
	// zero is the zero value of a kind's Go type. Other nodes do not have it.
	zero reflect.Value
	// customJSON: the JSON of an atomic value is not that of its Go kind, as for a Quantity or a []byte. hasJSON
	// compares such values only through the library's conversion, because their Go form says nothing about their JSON.
	customJSON bool
	// fields are those of a structure that can be owned, in the order of their names. The order is that of the names in
	// a set's JSON, so a walk can write members as it finds them.
	fields []structField
	// unowned are the fields of a structure that no manager owns, such as metadata.name, or status in a write of spec.
	// Reading them is still needed: a struct that has some is never empty (walk), and a configuration may set them
	// (applyPlan.unowned).
	unowned []accessor
	// dynamic: values have no Go type. They are maps, lists and scalars of decoded JSON, and may not fit the schema.
	dynamic bool
	// element is the type of a map's values or a list's elements.
	element *typeNode
	// keys identify the elements of a keyed list. They are in the order of x-kubernetes-list-map-keys. A path element
	// sorts them by name (keyElement).
	keys []keyField
}

// shape says how a value splits into parts.
type shape int

const (
	// The order has no meaning, except that atomic is the zero value.
	atomic      shape = iota // one part: a scalar, or an atomic list, map or struct
	structure                // a struct, field by field
	granularMap              // a map, value by value
	keyedList                // a list of structs, each identified by its keys
	setList                  // a list of strings or integers, each its own key
	deduced                  // no schema: a granularMap if the value is a map, else atomic
)

// accessor reads a field of a struct, or of a map that stands for a struct. One of its fields is set. The library's
// cache of struct fields (FieldCacheEntry) knows the JSON names, inlined structs and omitempty, so the fast path omits
// exactly the fields that the library omits.
type accessor struct {
	entry *value.FieldCacheEntry
	key   reflect.Value
}

// of returns the field, or a zero Value if JSON omits it. A value of another kind has no fields: it is null, or a
// dynamic value that shapeOf refuses.
func (a *accessor) of(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Struct:
		if v = a.entry.GetFrom(v); a.entry.CanOmit(v) {
			return reflect.Value{}
		}
		return v
	case reflect.Map:
		return v.MapIndex(a.key)
	}
	return reflect.Value{}
}

// structField is a field of a structure that can be owned.
type structField struct {
	*typeNode
	accessor
	element fieldpath.PathElement
	// name is the element as a set's JSON spells it, with the colon.
	name []byte
}

// keyField is a field of a list's element that is part of its key.
type keyField struct {
	name string
	accessor
	// implied is the schema's default, which stands for a missing key. nil: the key may be missing. A port without a
	// protocol is the TCP port, for example, however a client spells it.
	implied any
}

// shapeOf returns the shape of two values of t, one of which may be missing. It returns errNeedsLibrary for values
// without a Go type that do not fit t.
//
// A schema change does not rewrite stored objects, so a value may have a type that its current schema does not allow.
// If was and now have different types, no common shape exists, and the library decides, possibly by failing.
func (t *typeNode) shapeOf(was, now reflect.Value) (shape, error) {
	if !t.dynamic || t.shape == atomic {
		return t.shape, nil
	}
	shape := t.shape
	for _, v := range []reflect.Value{was, now} {
		if !v.IsValid() {
			continue
		}
		switch isMap := v.Kind() == reflect.Map; shape {
		case structure, granularMap:
			if !isMap {
				return shape, errNeedsLibrary
			}
		case deduced:
			if shape = atomic; isMap {
				shape = granularMap
			}
		case atomic: // deduced from was, which is no map
			if isMap {
				return shape, errNeedsLibrary
			}
		default:
			if v.Kind() != reflect.Slice {
				return shape, errNeedsLibrary
			}
		}
	}
	return shape, nil
}
