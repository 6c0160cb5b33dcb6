package fieldmanager

import (
	"reflect"

	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// deref follows pointers and interfaces. A nil pointer is returned as it is: it is null, not absent. A zero Value,
// which stands for absence, passes through as well.
func deref(v reflect.Value) reflect.Value {
	for (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && !v.IsNil() {
		v = v.Elem()
	}
	return v
}

// isNull reports whether a value is null in JSON.
func isNull(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return v.IsNil()
	}
	return false
}

// length returns the number of elements of a map or list, 0 for other values.
func length(v reflect.Value) int {
	if v.Kind() != reflect.Map && v.Kind() != reflect.Slice {
		return 0
	}
	return v.Len()
}

// equal reports whether two values have the same JSON. The cheap comparisons come first: the library's conversion of
// both values is what the fast path exists to avoid.
//
// The order is by cost: scalars by their Go value, composed values by DeepEqual, and only what is then still different
// by JSON. If the types differ (dynamic values only), the JSON decides. A value that cannot be converted counts as
// changed, which is the safe answer: its writer owns it.
func equal(a, b reflect.Value) bool {
	if a.Kind() == b.Kind() {
		switch {
		case a.Kind() == reflect.String:
			return a.String() == b.String()
		case a.CanInt():
			return a.Int() == b.Int()
		case a.Kind() == reflect.Bool:
			return a.Bool() == b.Bool()
		case reflect.DeepEqual(forDeepEqual(a), forDeepEqual(b)):
			return true
		}
	}
	// Different Go values may have the same JSON: a nil and an empty list that are omitted, two spellings of a
	// quantity.
	v, err := value.NewValueReflect(addressOf(a))
	if err != nil {
		return false
	}
	w, err := value.NewValueReflect(addressOf(b))
	return err == nil && value.Equals(v, w)
}

// forDeepEqual returns v, by its address if it has one, because an interface of a struct copies it.
func forDeepEqual(v reflect.Value) any {
	if v.CanAddr() {
		return v.Addr().Interface()
	}
	return v.Interface()
}

// addressOf returns a pointer to v, or to a copy of it. The library finds the methods of pointers only by a pointer.
// The value of a Go map, for example, has no address.
func addressOf(v reflect.Value) any {
	if v.CanAddr() {
		return v.Addr().Interface()
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.Interface()
}
