package fieldmanager

import (
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// visitor receives the parts of two values of one type: fields of structs, values of maps, elements of lists. A visitor
// that wants what is below a part walks the part in turn.
//
// In was and now a zero reflect.Value stands for a part that JSON omits, and a nil pointer, map or slice for null. name
// is the element as a set's JSON spells it, with the colon. It is nil for the parts of maps and lists, whose names only
// some visitors need.
//
// There are two visitors, comparison and encoder. For a new object both must find the same fields: encode is a faster
// compare.
type visitor interface {
	part(t *typeNode, element fieldpath.PathElement, name []byte, was, now reflect.Value) error
}

// walk visits the parts of two values of t that either of them has, and reports whether there are any. The parts of a
// map or list that is new come in the order of a set's JSON, which lets encoder write them as they come.
//
// A struct with fields that no manager owns always has parts. Otherwise a write that changes only such fields, as a new
// resourceVersion does, would own the struct itself.
//
// A walk recurses as deep as the object's JSON, which the API server bounds when it reads a body.
func (t *typeNode) walk(was, now reflect.Value, v visitor) (some bool, err error) {
	shape, err := t.shapeOf(was, now)
	if err != nil {
		return false, err
	}
	switch shape {
	case structure:
		some, err = t.walkFields(was, now, v)
		return some || len(t.unowned) > 0, err
	case granularMap:
		return t.walkMap(was, now, v)
	case keyedList, setList:
		return t.walkList(was, now, v)
	}
	return false, nil
}

func (t *typeNode) walkFields(was, now reflect.Value, v visitor) (some bool, err error) {
	for i := range t.fields {
		f := &t.fields[i]
		a, b := f.of(was), f.of(now)
		if !a.IsValid() && !b.IsValid() {
			continue
		}
		some = true
		if err := v.part(f.typeNode, f.element, f.name, a, b); err != nil {
			return some, err
		}
	}
	return some, nil
}

// With an old value the order is Go's random one. That is enough for comparison, which inserts into a set. The encoder
// walks only new maps, which are sorted.
func (t *typeNode) walkMap(was, now reflect.Value, v visitor) (some bool, err error) {
	if length(was) == 0 {
		for _, key := range sortedKeys(now) {
			if err := v.part(t.element, fieldOf(key), nil, reflect.Value{}, now.MapIndex(key)); err != nil {
				return true, err
			}
		}
		return length(now) > 0, nil
	}
	for i := was.MapRange(); i.Next(); {
		var after reflect.Value
		if length(now) > 0 {
			after = now.MapIndex(i.Key())
		}
		if err := v.part(t.element, fieldOf(i.Key()), nil, i.Value(), after); err != nil {
			return true, err
		}
	}
	if length(now) == 0 {
		return true, nil
	}
	for i := now.MapRange(); i.Next(); {
		if was.MapIndex(i.Key()).IsValid() {
			continue // visited above
		}
		if err := v.part(t.element, fieldOf(i.Key()), nil, reflect.Value{}, i.Value()); err != nil {
			return true, err
		}
	}
	return true, nil
}

// walkList visits the elements of two lists, except those that are equal in both: to make their path elements would
// cost more than to compare them.
//
// Elements are matched by their keys and not by their positions, so moving an element changes nobody's fields. The
// order of a list belongs to no manager.
func (t *typeNode) walkList(was, now reflect.Value, v visitor) (some bool, err error) {
	before, err := t.elementKeys(was)
	if err != nil {
		return false, err
	}
	after, err := t.elementKeys(now)
	if err != nil {
		return false, err
	}
	if len(before) == 0 {
		for _, e := range t.sortedElements(now) {
			if err := v.part(t.element, e.element, nil, reflect.Value{}, e.value); err != nil {
				return true, err
			}
		}
		return len(after) > 0, nil
	}
	for i, key := range before {
		a, b := deref(was.Index(i)), reflect.Value{}
		if j := indexOf(after, key, i); j >= 0 {
			if b = deref(now.Index(j)); equal(a, b) {
				continue
			}
		}
		if err := v.part(t.element, t.elementOf(a), nil, a, b); err != nil {
			return true, err
		}
	}
	for i, key := range after {
		if indexOf(before, key, i) >= 0 {
			continue // visited above
		}
		b := deref(now.Index(i))
		if err := v.part(t.element, t.elementOf(b), nil, reflect.Value{}, b); err != nil {
			return true, err
		}
	}
	return true, nil
}

// fieldOf returns the path element of a map's key.
func fieldOf(key reflect.Value) fieldpath.PathElement {
	name := key.String()
	return fieldpath.PathElement{FieldName: &name}
}

func sortedKeys(m reflect.Value) []reflect.Value {
	if length(m) == 0 {
		return nil
	}
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// listElement is an element of a list with the path element that identifies it.
type listElement struct {
	element fieldpath.PathElement
	value   reflect.Value
}

// sortedElements returns the elements of a list in the order of a set's JSON. Their keys are known to be sound
// (elementKeys).
func (t *typeNode) sortedElements(list reflect.Value) []listElement {
	out := make([]listElement, length(list))
	for i := range out {
		v := deref(list.Index(i))
		out[i] = listElement{t.elementOf(v), v}
	}
	slices.SortFunc(out, func(a, b listElement) int { return a.element.Compare(b.element) })
	return out
}
