package openapi

import (
	_ "embed"
	"reflect"
	"slices"
	"strings"
)

//go:generate sh -c "go run ./genmarkers > markers.txt"

// markerTable has a line for each type ("PACKAGE.TYPE MARK…") and field ("PACKAGE.TYPE:JSONNAME MARK…") with markers.
//
//go:embed markers.txt
var markerTable string

// marks are the markers of a type or field, by its key.
type marks map[string]string

func loadMarks() marks {
	m := marks{}
	for line := range strings.Lines(markerTable) {
		if key, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
			m[key] = rest
		}
	}
	return m
}

func typeKey(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

// get returns the values of all marks of that name.
func (m marks) get(key, name string) []string {
	var out []string
	for mark := range strings.FieldsSeq(m[key]) {
		if v, ok := strings.CutPrefix(mark, name+"="); ok {
			out = append(out, v)
		}
	}
	return out
}

func (m marks) has(key, name, value string) bool {
	return slices.Contains(m.get(key, name), value)
}

// flag tells whether there is a mark of that name without a value.
func (m marks) flag(key, name string) bool {
	return slices.Contains(strings.Fields(m[key]), name)
}
