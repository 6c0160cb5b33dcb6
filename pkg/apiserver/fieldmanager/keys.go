package fieldmanager

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// maxElements bounds the lists that the fast path compares. It searches them element by element, which is faster than
// an index for short lists, and quadratic for long ones. The search for duplicates alone takes 2,016 comparisons of
// strings for 64 elements.
const maxElements = 64

// elementKeys returns one string per element of a list, which identifies the element. It returns errNeedsLibrary for
// lists that are long, have duplicates, or have elements without a key.
//
// Stored objects may have duplicates: validation only warns about two environment variables of one name. The library
// has rules for them.
func (t *typeNode) elementKeys(list reflect.Value) ([]string, error) {
	n := length(list)
	if n == 0 {
		return nil, nil
	}
	if n > maxElements {
		return nil, errNeedsLibrary
	}
	keys := make([]string, n)
	for i := range keys {
		var room [4]any
		key := t.joinKey(t.keyValues(room[:0], deref(list.Index(i))))
		if key == "" || slices.Contains(keys[:i], key) {
			return nil, errNeedsLibrary
		}
		keys[i] = key
	}
	return keys, nil
}

// indexOf returns where key is, -1 for nowhere. It looks at guess first: most lists keep their order.
func indexOf(keys []string, key string, guess int) int {
	if guess < len(keys) && keys[guess] == key {
		return guess
	}
	return slices.Index(keys, key)
}

// keyValues appends to room the values of an element's keys in the order of t.keys. An element of a set is its own key.
func (t *typeNode) keyValues(room []any, element reflect.Value) []any {
	if t.shape == setList {
		switch {
		case element.Kind() == reflect.String:
			return append(room, element.String())
		case element.CanInt():
			return append(room, element.Int())
		}
		return append(room, nil)
	}
	for i := range t.keys {
		room = append(room, t.keys[i].of(element))
	}
	return room
}

// configKeyValues returns the values of the keys of an element of a configuration. It returns errNeedsLibrary if they
// are of another type, or if the element has none of them.
//
// An explicit null is not a missing key, and goes to the library.
func (t *typeNode) configKeyValues(config any) ([]any, error) {
	if t.shape == setList {
		if _, ok := config.(string); !ok {
			return nil, errNeedsLibrary
		}
		return []any{config}, nil
	}
	m, ok := config.(map[string]any)
	if !ok {
		return nil, errNeedsLibrary
	}
	out, given := make([]any, len(t.keys)), false
	for i := range t.keys {
		k := &t.keys[i]
		v, has := m[k.name]
		switch {
		case !has:
			v = k.fallback()
		case v == nil:
			return nil, errNeedsLibrary
		}
		out[i], given = v, given || has
	}
	if !given {
		// If the manager stops applying the only key that it gave, the element becomes another one by its defaults.
		return nil, errNeedsLibrary
	}
	return out, nil
}

// joinKey returns the key values of an element as one string. It returns "" if there are none, or if one is neither a
// string nor an integer. The string is only compared with others of the same list and never leaves this package.
// Strings are quoted, and set elements have a prefix, so that "1" and 1 differ and no value can imitate two keys.
func (t *typeNode) joinKey(values []any) string {
	if t.shape == setList {
		switch v := values[0].(type) {
		case string:
			return "=" + v
		case int64:
			return "#" + strconv.FormatInt(v, 10)
		}
		return ""
	}
	var b strings.Builder
	for i, key := range values {
		switch v := key.(type) {
		case string:
			b.WriteString(t.keys[i].name + "=" + strconv.Quote(v))
		case int64:
			b.WriteString(t.keys[i].name + "=" + strconv.FormatInt(v, 10))
		case nil:
		default:
			return ""
		}
	}
	return b.String()
}

// of returns an element's key: a string, an int64, nil if it has none, or a value of any other type as it is.
func (k *keyField) of(element reflect.Value) any {
	v := deref(k.accessor.of(element))
	switch {
	case !v.IsValid():
		return k.fallback()
	case v.Kind() == reflect.String:
		return v.String()
	case v.CanInt():
		return v.Int()
	}
	return v
}

// fallback returns the key of an element that does not give it, nil for none. Numbers of schemas are float64, those of
// objects are int64 where they are whole.
func (k *keyField) fallback() any {
	if n, ok := k.implied.(float64); ok && n == math.Trunc(n) {
		return int64(n)
	}
	return k.implied
}

// elementOf returns the path element of a list's element.
func (t *typeNode) elementOf(element reflect.Value) fieldpath.PathElement {
	var room [4]any
	return t.keyElement(t.keyValues(room[:0], element))
}

// keyElement returns the path element for key values.
func (t *typeNode) keyElement(values []any) fieldpath.PathElement {
	if t.shape == setList {
		v := value.NewValueInterface(values[0])
		return fieldpath.PathElement{Value: &v}
	}
	fields := make(value.FieldList, 0, len(values))
	for i, key := range values {
		// A missing key without a default is left out of the path element, as in the library. The element is then known
		// by its other keys.
		if key != nil {
			fields = append(fields, value.Field{Name: t.keys[i].name, Value: value.NewValueInterface(key)})
		}
	}
	fields.Sort()
	return fieldpath.PathElement{Key: &fields}
}
