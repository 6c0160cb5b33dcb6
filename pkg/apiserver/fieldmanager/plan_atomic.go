package fieldmanager

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// atomic plans a value that has no parts. It is set if its JSON differs from that of the slot.
//
// Strings, integers and null are planned for every type. Other values are planned only if the type does not make its
// own JSON and if no list in them needs the library's validation.
func (p *applyPlan) atomic(t *typeNode, s setting) error {
	switch want := s.want.(type) {
	case string, int64, nil:
	case []any:
		if t.customJSON || slices.ContainsFunc(want, func(v any) bool { return !isPlain(v) }) {
			return errNeedsLibrary
		}
	default:
		if t.customJSON || !isPlain(want) {
			return errNeedsLibrary
		}
	}
	switch {
	case !s.slot.IsValid():
		return nil
	case !s.absent && t.hasJSON(s.slot, s.want):
		return nil
	}
	return p.put(s.want, s.slot)
}

// isPlain reports whether a part of an atomic value has no list that the library would validate: one with duplicates,
// or with elements that may need keys.
//
// The library validates lists inside atomic values too, by their own schemas, which typeNode does not have. Lists of
// distinct scalars are valid under every list type, so no schema is needed for them. The search is quadratic, and
// maxElements bounds it.
func isPlain(part any) bool {
	switch part := part.(type) {
	case map[string]any:
		for _, v := range part {
			if !isPlain(v) {
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

// hasJSON reports whether the JSON of v, an atomic value of t, is want.
//
// The cases before the conversion are those that need none. They decide nearly all values of a configuration; the
// conversion allocates.
func (t *typeNode) hasJSON(v reflect.Value, want any) bool {
	v = deref(v)
	if isNull(v) {
		return want == nil
	}
	switch want := want.(type) {
	case string:
		if v.Kind() == reflect.String && !t.customJSON {
			return v.String() == want
		}
	case bool:
		return v.Kind() == reflect.Bool && v.Bool() == want
	case int64:
		if v.CanInt() && !t.customJSON {
			return v.Int() == want
		}
	}
	has, err := value.NewValueReflect(addressOf(v))
	return err == nil && value.Equals(value.NewValueInterface(want), has)
}

// decodeInto sets what v points to. It returns errNeedsLibrary for values that do not fit the type, and for fields that
// the type does not have.
//
// The decoder is strict, so an unknown field below an atomic value also ends the fast path. The library words the
// error.
func decodeInto(v reflect.Value, want any) error {
	t := v.Type().Elem()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if m, ok := want.(map[string]any); ok && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map) {
		for v.Elem().Kind() == reflect.Pointer {
			v.Elem().Set(reflect.New(v.Elem().Type().Elem()))
			v = v.Elem()
		}
		return decodeStrict(m, v.Interface())
	}
	// The converter decodes only objects, so other values go through a struct with one field.
	field := reflect.StructField{Name: "V", Type: v.Type().Elem(), Tag: `json:"v"`}
	holder := reflect.New(reflect.StructOf([]reflect.StructField{field}))
	if err := decodeStrict(map[string]any{"v": want}, holder.Interface()); err != nil {
		return err
	}
	v.Elem().Set(holder.Elem().Field(0))
	return nil
}

func decodeStrict(m map[string]any, into any) error {
	if runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(m, into, true) != nil {
		return errNeedsLibrary
	}
	return nil
}
