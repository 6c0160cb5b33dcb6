package registry

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// emptyLists knows where in a Go type JSON shows a list, or a map, also if it is empty. Protobuf does not tell an empty
// one from none, so what is stored shows none (null) where a client wrote an empty one ([]).
type emptyLists struct {
	fields []listField
}

// listField is a field of a struct that is such a list, or has some below.
type listField struct {
	index int
	shown bool
	below *emptyLists // nil: there are none
}

var jsonMarshaler = reflect.TypeFor[json.Marshaler]()

// emptyListsOf looks through a struct, and what it points to and lists; above are the structs that it is a part of.
// What is nil has no such list.
func emptyListsOf(t reflect.Type, above ...reflect.Type) *emptyLists {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.Contains(above, t) || reflect.PointerTo(t).Implements(jsonMarshaler) {
		return nil
	}
	l := &emptyLists{}
	for i := range t.NumField() {
		f := t.Field(i)
		below := emptyListsOf(f.Type, append(above, t)...)
		if shown := shownEmpty(f); shown || below != nil {
			l.fields = append(l.fields, listField{i, shown, below})
		}
	}
	if len(l.fields) == 0 {
		return nil
	}
	return l
}

// shownEmpty reports whether JSON shows an empty list in f. Bytes are no list: protobuf has them if there are none.
func shownEmpty(f reflect.StructField) bool {
	if k := f.Type.Kind(); k != reflect.Map && (k != reflect.Slice || f.Type.Elem().Kind() == reflect.Uint8) {
		return false
	}
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name != "-" && !strings.Contains(options, "omitempty") && !strings.Contains(options, "inline")
}

// clear makes the empty lists of v none.
func (l *emptyLists) clear(v reflect.Value) {
	if l == nil {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			l.clear(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			l.clear(v.Index(i))
		}
	case reflect.Struct:
		for _, f := range l.fields {
			field := v.Field(f.index)
			if f.shown && field.Len() == 0 && !field.IsNil() {
				field.SetZero()
			}
			f.below.clear(field)
		}
	}
}
