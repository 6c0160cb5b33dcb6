package fieldmanager

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// configuration is walked beside the live object that it is applied to: what it owns, and what the object lacks of it. The walk changes
// nothing. Its slots are parts of the live object that can be set; a zero reflect.Value is for what is new with all that it holds.
type configuration struct {
	// out is the field set of the configuration, as the JSON of a set.
	out, name []byte
	// touched are the paths of all values that the configuration changes or adds, without what is below a new one.
	touched []fieldpath.Path
	// edits make the live object what it becomes, in their order.
	edits []func()
	path  fieldpath.Path
}

// configure walks a configuration, of which the comparer is that of its kind. errUnusual: the library must apply it, or say what is
// wrong with it.
func (c *comparer) configure(config map[string]any, live reflect.Value) (*configuration, error) {
	w := &configuration{out: make([]byte, 1, 2<<10), path: make(fieldpath.Path, 0, 16)}
	w.out[0] = '{'
	if err := w.structure(c, config, live); err != nil {
		return nil, err
	}
	w.out = append(w.out, '}')
	return w, nil
}

// value walks what a configuration wants in a slot, and tells whether its path is in the set beside what is below it.
func (w *configuration) value(c *comparer, want any, slot reflect.Value, absent bool) (member bool, err error) {
	if c.form == leaf {
		return true, w.leaf(c, want, slot, absent)
	}
	if slot.IsValid() && (absent || nothing(slot)) {
		if want == nil || size(reflect.ValueOf(want)) == 0 && c.form != structure {
			return false, errUnusual // null and empty are different, and the same in a struct
		}
		if slot.Kind() == reflect.Struct {
			w.touch()
		} else {
			if err := w.put(want, slot); err != nil {
				return false, err
			}
			slot = reflect.Value{}
		}
	}
	slot = pointed(slot)
	switch want := want.(type) {
	case map[string]any:
		if c.form == structure {
			if len(want) == 0 && len(c.without) > 0 {
				return false, errUnusual // of metadata an empty one is nobody's, of others it is in the set
			}
			return len(want) == 0, w.structure(c, want, slot)
		}
		if c.form == granular {
			return len(want) == 0, w.granular(c, want, slot)
		}
	case []any:
		if c.form == keyed || c.form == set {
			return false, w.list(c, want, slot)
		}
	}
	return false, errUnusual
}

// part walks one part and writes it, after a comma if it is not the first. It needs name no more when it goes on to what is below.
func (w *configuration) part(name []byte, element fieldpath.PathElement, c *comparer, always bool, want any, slot reflect.Value, absent bool) error {
	from := len(w.out)
	if w.out[from-1] != '{' {
		w.out = append(w.out, ',')
	}
	w.out = append(append(w.out, name...), '{')
	begun := len(w.out)
	if always {
		w.out = append(w.out, `".":{}`...)
	}
	below := len(w.out)
	w.path = append(w.path, element)
	member, err := w.value(c, want, slot, absent)
	w.path = w.path[:len(w.path)-1]
	if err != nil {
		return err
	}
	if len(w.out) == below {
		if !member && !always {
			w.out = w.out[:from]
			return nil
		}
		w.out = w.out[:begun]
	}
	w.out = append(w.out, '}')
	return nil
}

func (w *configuration) structure(c *comparer, want map[string]any, slot reflect.Value) error {
	known := 0
	for i := range c.fields {
		f := &c.fields[i]
		v, ok := want[f.entry.JsonName]
		if !ok {
			continue
		}
		known++
		in, absent, err := settable(f.entry, slot)
		if err != nil {
			return err
		}
		if err := w.part(f.name, f.element, f.comparer, false, v, in, absent); err != nil {
			return err
		}
	}
	for _, p := range c.without {
		v, ok := want[p.entry.JsonName]
		if !ok {
			continue
		}
		known++
		if err := w.unowned(p.entry, v, slot); err != nil {
			return err
		}
	}
	if known != len(want) {
		return errUnusual // unknown fields
	}
	return nil
}

// unowned is a field that nobody owns, of which a configuration may still say what it becomes.
func (w *configuration) unowned(entry *value.FieldCacheEntry, want any, slot reflect.Value) error {
	if entry.JsonName == "managedFields" {
		return errUnusual
	}
	switch want := want.(type) {
	case map[string]any:
		if t := entry.TypeEntry; len(want) > 0 || t.Fields() == nil || t.CanConvertToUnstructured() {
			return errUnusual
		}
		return nil // an empty struct
	case []any, nil: // null leaves a struct as it is
		return errUnusual
	}
	in, absent, err := settable(entry, slot)
	if err != nil {
		return err
	}
	w.path = append(w.path, fieldpath.PathElement{FieldName: &entry.JsonName})
	err = w.leaf(&comparer{}, want, in, absent)
	w.path = w.path[:len(w.path)-1]
	return err
}

func (w *configuration) granular(c *comparer, want map[string]any, live reflect.Value) (err error) {
	keys := make([]string, 0, len(want))
	for key := range want {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		element := fieldpath.PathElement{FieldName: &key}
		if w.name, err = appendName(w.name[:0], element); err != nil {
			return err
		}
		if !live.IsValid() {
			if err := w.part(w.name, element, c.element, true, want[key], live, false); err != nil {
				return err
			}
			continue
		}
		if c.element.form != leaf {
			return errUnusual
		}
		k, slot := reflect.ValueOf(key).Convert(live.Type().Key()), reflect.New(live.Type().Elem()).Elem()
		has, before := live.MapIndex(k), len(w.edits)
		if has.IsValid() {
			slot.Set(has)
		}
		if err := w.part(w.name, element, c.element, true, want[key], slot, !has.IsValid()); err != nil {
			return err
		}
		if len(w.edits) > before {
			w.edits = append(w.edits, func() { live.SetMapIndex(k, slot) })
		}
	}
	return nil
}

// wanted is an element of a list in a configuration.
type wanted struct {
	element
	config any
}

// list walks a list in the order of its keys. Elements that are there stay where they are, in the configuration's order; those that
// are not come last, as they must in the configuration.
func (w *configuration) list(c *comparer, want []any, live reflect.Value) error {
	if len(want) > maxElements {
		return errUnusual
	}
	has, err := c.names(live)
	if err != nil {
		return err
	}
	all, names := make([]wanted, len(want)), make([]string, len(want))
	last, grown := -1, []reflect.Value(nil)
	for i, config := range want {
		keys, err := c.configKeys(config)
		if err != nil {
			return err
		}
		if names[i] = c.joined(keys); names[i] == "" || slices.Contains(names[:i], names[i]) {
			return errUnusual
		}
		all[i] = wanted{element{element: c.elementOf(keys)}, config}
		at := find(has, names[i], i)
		switch {
		case at >= 0:
			if at <= last || len(grown) > 0 {
				return errUnusual // another order
			}
			last, all[i].value = at, live.Index(at)
		case live.IsValid():
			slot := reflect.New(live.Type().Elem()).Elem()
			w.path = append(w.path, all[i].element.element)
			err := w.put(config, slot)
			w.path = w.path[:len(w.path)-1]
			if err != nil {
				return err
			}
			grown = append(grown, slot)
		}
	}
	slices.SortFunc(all, func(a, b wanted) int { return a.element.element.Compare(b.element.element) })
	for i := range all {
		if w.name, err = appendName(w.name[:0], all[i].element.element); err != nil {
			return err
		}
		if err := w.part(w.name, all[i].element.element, c.element, true, all[i].config, all[i].value, false); err != nil {
			return err
		}
	}
	if len(grown) > 0 {
		w.edits = append(w.edits, func() { live.Set(reflect.Append(live, grown...)) })
	}
	return nil
}

// leaf compares what a configuration wants with what is there, as the library does: by what JSON has.
func (w *configuration) leaf(c *comparer, want any, slot reflect.Value, absent bool) error {
	switch want := want.(type) {
	case string, int64, nil:
	case []any:
		if c.own || slices.ContainsFunc(want, func(v any) bool { return !plain(v) }) {
			return errUnusual
		}
	default:
		if c.own || !plain(want) {
			return errUnusual
		}
	}
	switch {
	case !slot.IsValid():
		return nil
	case !absent && c.same(want, slot):
		return nil
	}
	return w.put(want, slot)
}

// plain tells whether a part of what is one value has no list in which the library would look for the same element twice, or for keys.
func plain(part any) bool {
	switch part := part.(type) {
	case map[string]any:
		for _, v := range part {
			if !plain(v) {
				return false
			}
		}
	case []any:
		for i, v := range part {
			switch v.(type) {
			case string, int64, bool:
			default:
				return false
			}
			if len(part) > maxElements || slices.Contains(part[:i], v) {
				return false
			}
		}
	}
	return true
}

// same tells whether the JSON of v is want.
func (c *comparer) same(want any, v reflect.Value) bool {
	v = pointed(v)
	if nothing(v) {
		return want == nil
	}
	switch want := want.(type) {
	case string:
		if v.Kind() == reflect.String && !c.own {
			return v.String() == want
		}
	case bool:
		return v.Kind() == reflect.Bool && v.Bool() == want
	case int64:
		if v.CanInt() && !c.own {
			return v.Int() == want
		}
	}
	has, err := value.NewValueReflect(addressed(v))
	return err == nil && value.Equals(value.NewValueInterface(want), has)
}

func (w *configuration) touch() { w.touched = append(w.touched, w.path.Copy()) }

// put makes want the value of a slot.
func (w *configuration) put(want any, slot reflect.Value) error {
	w.touch()
	v := reflect.New(slot.Type())
	if err := into(v, want); err != nil {
		return err
	}
	w.edits = append(w.edits, func() { slot.Set(v.Elem()) })
	return nil
}

// into sets what v points to. Fields that the type does not have are unusual.
func into(v reflect.Value, want any) error {
	t := v.Type().Elem()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if m, ok := want.(map[string]any); ok && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map) {
		for v.Elem().Kind() == reflect.Pointer {
			v.Elem().Set(reflect.New(v.Elem().Type().Elem()))
			v = v.Elem()
		}
		return unusualIf(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(m, v.Interface(), true))
	}
	holder := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "V", Type: v.Type().Elem(), Tag: `json:"v"`}}))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(map[string]any{"v": want}, holder.Interface(), true); err != nil {
		return unusualIf(err)
	}
	v.Elem().Set(holder.Elem().Field(0))
	return nil
}

func unusualIf(err error) error {
	if err != nil {
		return errUnusual
	}
	return nil
}

// settable returns a field of a struct that can be set, and whether JSON leaves it out. Of no struct it is no field.
func settable(entry *value.FieldCacheEntry, of reflect.Value) (slot reflect.Value, absent bool, err error) {
	if !of.IsValid() {
		return of, false, nil
	}
	if slot = entry.GetFrom(of); !slot.CanSet() {
		return slot, false, errUnusual
	}
	return slot, entry.CanOmit(slot), nil
}

// nothing tells whether a value is null in JSON.
func nothing(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return v.IsNil()
	}
	return false
}

// hasAny tells whether a set has a path or anything below it.
func hasAny(set *fieldpath.Set, path fieldpath.Path) bool {
	if set.Has(path) {
		return true
	}
	for _, element := range path {
		if set = set.WithPrefix(element); set.Empty() {
			return false
		}
	}
	return true
}
