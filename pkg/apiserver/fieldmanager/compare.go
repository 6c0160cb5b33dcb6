package fieldmanager

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// errUnusual is for writes that only the library can compare.
var errUnusual = errors.New("not to be compared in short")

// difference is what a write changed, as field sets have it: the fields that are new or have another value, and those that are
// gone. With a field, an element of a list or a value of a map that is new or gone goes all that it holds.
type difference struct{ changed, removed *fieldpath.Set }

// compare returns how now differs from was, which are structs of the comparer's type. errUnusual: it cannot be told in short.
func (c *comparer) compare(was, now reflect.Value) (difference, error) {
	w := walk{difference: difference{fieldpath.NewSet(), fieldpath.NewSet()}, path: make(fieldpath.Path, 0, 16)}
	err := w.visit(c, was, now)
	return w.difference, err
}

// walk compares two objects. A zero reflect.Value stands for what JSON leaves out, a nil pointer, map or slice for null.
type walk struct {
	difference
	path fieldpath.Path
}

func (w *walk) visit(c *comparer, was, now reflect.Value) error {
	was, now = pointed(was), pointed(now)
	form, err := c.formOf(was, now)
	if err != nil {
		return err
	}
	var some bool
	switch form {
	case structure:
		some, err = c.present(was, now, func(f *fieldComparer, was, now reflect.Value) error {
			return w.below(f.comparer, f.element, was, now)
		})
		some = some || len(c.without) > 0
	case granular:
		some, err = w.granular(c, was, now)
	case keyed, set:
		some, err = w.list(c, was, now)
	}
	switch {
	case err != nil:
		return err
	case !was.IsValid():
		w.changed.Insert(w.path)
	case !now.IsValid():
		w.removed.Insert(w.path)
	case !some && !equal(was, now): // a leaf, or nothing in either: then null and empty differ
		w.changed.Insert(w.path)
	}
	return nil
}

// below visits a part of two values.
func (w *walk) below(c *comparer, element fieldpath.PathElement, was, now reflect.Value) error {
	w.path = append(w.path, element)
	err := w.visit(c, was, now)
	w.path = w.path[:len(w.path)-1]
	return err
}

// present visits the fields that one of two structs has, and tells whether there is any.
func (c *comparer) present(was, now reflect.Value, visit func(f *fieldComparer, was, now reflect.Value) error) (some bool, err error) {
	for i := range c.fields {
		f := &c.fields[i]
		a, b := f.of(was), f.of(now)
		if !a.IsValid() && !b.IsValid() {
			continue
		}
		some = true
		if err := visit(f, a, b); err != nil {
			return some, err
		}
	}
	return some, nil
}

// of returns a field, or a zero Value if JSON leaves it out.
func (p *place) of(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Struct:
		if v = p.entry.GetFrom(v); p.entry.CanOmit(v) {
			return reflect.Value{}
		}
		return v
	case reflect.Map:
		return v.MapIndex(p.key)
	}
	return reflect.Value{}
}

// granular visits the values of maps and tells whether there is any.
func (w *walk) granular(c *comparer, was, now reflect.Value) (some bool, err error) {
	each := func(in, other reflect.Value, visit func(element fieldpath.PathElement, v, o reflect.Value) error) error {
		if size(in) == 0 {
			return nil
		}
		for i := in.MapRange(); i.Next(); {
			some = true
			var o reflect.Value
			if size(other) > 0 {
				o = other.MapIndex(i.Key())
			}
			key := i.Key().String()
			if err := visit(fieldpath.PathElement{FieldName: &key}, i.Value(), o); err != nil {
				return err
			}
		}
		return nil
	}
	if err := each(was, now, func(element fieldpath.PathElement, v, o reflect.Value) error {
		return w.below(c.element, element, v, o)
	}); err != nil {
		return some, err
	}
	return some, each(now, was, func(element fieldpath.PathElement, v, o reflect.Value) error {
		if o.IsValid() {
			return nil // visited before
		}
		return w.below(c.element, element, o, v)
	})
}

// list visits the elements of lists and tells whether there is any.
func (w *walk) list(c *comparer, was, now reflect.Value) (some bool, err error) {
	a, err := c.names(was)
	if err != nil {
		return false, err
	}
	b, err := c.names(now)
	if err != nil {
		return false, err
	}
	for i, name := range a {
		one, other := pointed(was.Index(i)), reflect.Value{}
		if j := find(b, name, i); j >= 0 {
			if other = pointed(now.Index(j)); equal(one, other) {
				continue
			}
		}
		if err := w.below(c.element, c.pathElement(one), one, other); err != nil {
			return true, err
		}
	}
	for i, name := range b {
		if find(a, name, i) < 0 {
			one := pointed(now.Index(i))
			if err := w.below(c.element, c.pathElement(one), reflect.Value{}, one); err != nil {
				return true, err
			}
		}
	}
	return len(a)+len(b) > 0, nil
}

// find returns where name is, mostly at i.
func find(names []string, name string, i int) int {
	if i < len(names) && names[i] == name {
		return i
	}
	return slices.Index(names, name)
}

// maxElements bounds the lists that are searched element by element.
const maxElements = 64

// names are what tells the elements of a list apart. Lists with duplicates, and elements without a key, are unusual.
func (c *comparer) names(list reflect.Value) ([]string, error) {
	n := size(list)
	if n == 0 {
		return nil, nil
	}
	if n > maxElements {
		return nil, errUnusual
	}
	names := make([]string, n)
	for i := range names {
		name := c.name(pointed(list.Index(i)))
		if name == "" || slices.Contains(names[:i], name) {
			return nil, errUnusual
		}
		names[i] = name
	}
	return names, nil
}

// name is "" for an element that has none.
func (c *comparer) name(element reflect.Value) string {
	var room [4]any
	return c.joined(c.keysOf(room[:0], element))
}

// keysOf are the keys of an element in the order of c.keys; that of a set's is itself.
func (c *comparer) keysOf(room []any, element reflect.Value) []any {
	if c.form == set {
		switch {
		case element.Kind() == reflect.String:
			return append(room, element.String())
		case element.CanInt():
			return append(room, element.Int())
		}
		return append(room, nil)
	}
	for i := range c.keys {
		room = append(room, c.keys[i].of(element))
	}
	return room
}

// configKeys are the keys of an element of a configuration.
func (c *comparer) configKeys(config any) ([]any, error) {
	if c.form == set {
		if _, ok := config.(string); !ok {
			return nil, errUnusual
		}
		return []any{config}, nil
	}
	m, ok := config.(map[string]any)
	if !ok {
		return nil, errUnusual
	}
	out, given := make([]any, len(c.keys)), false
	for i := range c.keys {
		k := &c.keys[i]
		v, has := m[k.name]
		switch {
		case !has:
			v = k.otherwise()
		case v == nil:
			return nil, errUnusual
		}
		out[i], given = v, given || has
	}
	if !given {
		return nil, errUnusual // a key that the manager had is taken away, and what is left is another element
	}
	return out, nil
}

// joined are keys as one string; "" if there is none, or one that is unusual.
func (c *comparer) joined(keys []any) string {
	if c.form == set {
		switch v := keys[0].(type) {
		case string:
			return "=" + v
		case int64:
			return "#" + strconv.FormatInt(v, 10)
		}
		return ""
	}
	var b strings.Builder
	for i, key := range keys {
		switch v := key.(type) {
		case string:
			b.WriteString(c.keys[i].name + "=" + strconv.Quote(v))
		case int64:
			b.WriteString(c.keys[i].name + "=" + strconv.FormatInt(v, 10))
		case nil:
		default:
			return ""
		}
	}
	return b.String()
}

// of returns an element's key: a string, an int64, nil if it has none, anything else if it is of another type.
func (k *keyField) of(element reflect.Value) any {
	v := pointed(k.place.of(element))
	switch {
	case !v.IsValid():
		return k.otherwise()
	case v.Kind() == reflect.String:
		return v.String()
	case v.CanInt():
		return v.Int()
	}
	return v
}

// otherwise is the key of an element that does not give it, nil if it has none.
func (k *keyField) otherwise() any {
	if n, ok := k.implied.(float64); ok {
		return int64(n)
	}
	return k.implied
}

func (c *comparer) pathElement(element reflect.Value) fieldpath.PathElement {
	var room [4]any
	return c.elementOf(c.keysOf(room[:0], element))
}

// elementOf is the path element of an element with such keys.
func (c *comparer) elementOf(keys []any) fieldpath.PathElement {
	if c.form == set {
		v := value.NewValueInterface(keys[0])
		return fieldpath.PathElement{Value: &v}
	}
	fields := make(value.FieldList, 0, len(keys))
	for i, key := range keys {
		if key != nil {
			fields = append(fields, value.Field{Name: c.keys[i].name, Value: value.NewValueInterface(key)})
		}
	}
	fields.Sort()
	return fieldpath.PathElement{Key: &fields}
}

// pointed is what v points to; v if it points to nothing.
func pointed(v reflect.Value) reflect.Value {
	for (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && !v.IsNil() {
		v = v.Elem()
	}
	return v
}

// formOf is the form of two values of c, of which one may be missing. errUnusual: values of no Go type do not fit it.
func (c *comparer) formOf(was, now reflect.Value) (form, error) {
	if !c.dynamic || c.form == leaf {
		return c.form, nil
	}
	form := c.form
	for _, v := range []reflect.Value{was, now} {
		if !v.IsValid() {
			continue
		}
		switch isMap := v.Kind() == reflect.Map; form {
		case structure, granular:
			if !isMap {
				return form, errUnusual
			}
		case deduced:
			if form = leaf; isMap {
				form = granular
			}
		case leaf:
			if isMap {
				return form, errUnusual
			}
		default:
			if v.Kind() != reflect.Slice {
				return form, errUnusual
			}
		}
	}
	return form, nil
}

// size is the number of elements of a map or list, 0 for what is none.
func size(v reflect.Value) int {
	if v.Kind() != reflect.Map && v.Kind() != reflect.Slice {
		return 0
	}
	return v.Len()
}

// equal tells whether the JSON of two values is the same.
func equal(a, b reflect.Value) bool {
	if a.Kind() == b.Kind() {
		switch {
		case a.Kind() == reflect.String:
			return a.String() == b.String()
		case a.CanInt():
			return a.Int() == b.Int()
		case a.Kind() == reflect.Bool:
			return a.Bool() == b.Bool()
		case reflect.DeepEqual(held(a), held(b)):
			return true
		}
	}
	// Go values may differ and mean the same: a nil and an empty list that are left out, the spelling of a quantity.
	v, err := value.NewValueReflect(addressed(a))
	if err != nil {
		return false
	}
	w, err := value.NewValueReflect(addressed(b))
	return err == nil && value.Equals(v, w)
}

// held is v for reflect.DeepEqual, by its address if it has one: that copies nothing.
func held(v reflect.Value) any {
	if v.CanAddr() {
		return v.Addr().Interface()
	}
	return v.Interface()
}

// addressed is a pointer to v or to a copy of it.
func addressed(v reflect.Value) any {
	if v.CanAddr() {
		return v.Addr().Interface()
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.Interface()
}
