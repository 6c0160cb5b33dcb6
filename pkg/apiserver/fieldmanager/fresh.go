package fieldmanager

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// fresh writes the field set of a new object as its JSON at once, without making the set: a new object has many fields, and they
// come in the order that the JSON has. It is used for one object after the other.
type fresh struct{ out, name []byte }

// set returns what compare of an object with was, its type's zero value, has as changed; nil for nothing. errUnusual: it cannot be told
// in short.
func (w *fresh) set(c *comparer, was, now reflect.Value) (*metav1.FieldsV1, error) {
	w.out = w.out[:0]
	if owned, err := w.value(c, was, now); err != nil || !owned {
		return nil, err
	}
	set := &metav1.FieldsV1{}
	set.SetRawBytes(w.out) // copies
	return set, nil
}

// value writes what is below a value: {} for a leaf. It tells whether any of it is owned; if not, it wrote nothing.
func (w *fresh) value(c *comparer, was, now reflect.Value) (owned bool, err error) {
	was, now = pointed(was), pointed(now)
	if !now.IsValid() {
		return false, errUnusual
	}
	from := len(w.out)
	w.out = append(w.out, '{')
	if !was.IsValid() { // with what is new goes all that it holds
		w.out = append(w.out, `".":{}`...)
	}
	begun := len(w.out)
	some, err := w.parts(c, was, now)
	if err != nil {
		return false, err
	}
	switch {
	case len(w.out) > begun:
	case !was.IsValid(), !some && !equal(was, now):
		w.out = w.out[:from+1]
	default:
		w.out = w.out[:from]
		return false, nil
	}
	w.out = append(w.out, '}')
	return true, nil
}

// parts writes the parts of a value and tells whether there is any, also if nobody owns it.
func (w *fresh) parts(c *comparer, was, now reflect.Value) (some bool, err error) {
	form, err := c.formOf(was, now)
	if err != nil {
		return false, err
	}
	switch form {
	case structure:
		some, err = c.present(was, now, func(f *fieldComparer, was, now reflect.Value) error {
			return w.part(f.name, f.comparer, was, now)
		})
		return some || len(c.without) > 0, err
	case granular:
		for _, key := range keysOf(now) {
			field := key.String()
			if w.name, err = appendName(w.name[:0], fieldpath.PathElement{FieldName: &field}); err != nil {
				return true, err
			}
			if err := w.part(w.name, c.element, reflect.Value{}, now.MapIndex(key)); err != nil {
				return true, err
			}
		}
		some = size(now) > 0
	case keyed, set:
		order, err := c.elementsOf(now)
		if err != nil {
			return false, err
		}
		for _, e := range order {
			if w.name, err = appendName(w.name[:0], e.element); err != nil {
				return true, err
			}
			if err := w.part(w.name, c.element, reflect.Value{}, e.value); err != nil {
				return true, err
			}
		}
		some = len(order) > 0
	}
	return some, nil
}

// part writes one part of a value, after a comma if it is not the first. It needs name no more when it goes on to what is below.
func (w *fresh) part(name []byte, c *comparer, was, now reflect.Value) error {
	from := len(w.out)
	if w.out[from-1] != '{' {
		w.out = append(w.out, ',')
	}
	w.out = append(w.out, name...)
	owned, err := w.value(c, was, now)
	if !owned {
		w.out = w.out[:from]
	}
	return err
}

// appendName appends what a part is called in the JSON of a set, with the colon. Names that JSON must escape otherwise than by a
// backslash before quotes are left to the library.
func appendName(out []byte, element fieldpath.PathElement) ([]byte, error) {
	var name string
	if out = append(out, '"'); element.FieldName != nil {
		out, name = append(out, "f:"...), *element.FieldName
	} else {
		var err error
		if name, err = fieldpath.SerializePathElement(element); err != nil {
			return out, err
		}
	}
	for i := range len(name) {
		c := name[i]
		if c < ' ' || c > '~' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return out, errUnusual
		}
		if c == '"' {
			out = append(out, '\\')
		}
		out = append(out, c)
	}
	return append(out, `":`...), nil
}

func keysOf(m reflect.Value) []reflect.Value {
	if size(m) == 0 {
		return nil
	}
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

type element struct {
	element fieldpath.PathElement
	value   reflect.Value
}

// elementsOf are the elements of a list in the order of their keys.
func (c *comparer) elementsOf(list reflect.Value) ([]element, error) {
	if _, err := c.names(list); err != nil {
		return nil, err
	}
	out := make([]element, size(list))
	for i := range out {
		v := pointed(list.Index(i))
		out[i] = element{c.pathElement(v), v}
	}
	slices.SortFunc(out, func(a, b element) int { return a.element.Compare(b.element) })
	return out, nil
}
