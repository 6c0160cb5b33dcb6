package openapi

import (
	_ "embed"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

//go:generate sh -c "go run ./genmarkers > markers.txt"

// markerTable has a line for each type ("PACKAGE.TYPE MARK…") and field ("PACKAGE.TYPE:JSONNAME MARK…") with markers,
// and one for each value of an enumeration that says what it means ("PACKAGE.TYPE=VALUE WORDS"). Such values are
// escaped as in the query of a URL. Descriptions that the types tell otherwise, or not at all, follow a key and "#",
// quoted as in Go.
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

// description is what the table says of a type or field; else it is what the type says itself.
func (m marks) description(key, told string) string {
	if words, err := strconv.Unquote(m[key+"#"]); err == nil {
		return words
	}
	return told
}

// flag reports whether there is a mark of that name without a value.
func (m marks) flag(key, name string) bool {
	return slices.Contains(strings.Fields(m[key]), name)
}

// values are those of the enumeration t, sorted; nil if it is none.
func (m marks) values(t reflect.Type) []any {
	marks := m.get(typeKey(t), "enum")
	if len(marks) != 1 {
		return nil
	}
	var out []any
	for v := range strings.SplitSeq(marks[0], ",") {
		if plain, err := url.QueryUnescape(v); err == nil { // genmarkers escaped it
			out = append(out, plain)
		}
	}
	return out
}

// meanings is what a field of the enumeration t adds to its description: its values and what each means, as Kubernetes
// words it.
func (m marks) meanings(t reflect.Type, values []any, spaced bool) string {
	var out strings.Builder
	if spaced { // Kubernetes counts an empty line before the markers of a comment as well
		out.WriteString("\n")
	}
	out.WriteString("\n\nPossible enum values:")
	for _, v := range values {
		fmt.Fprintf(&out, "\n - `%q`", v)
		if words := m[typeKey(t)+"="+url.QueryEscape(fmt.Sprint(v))]; words != "" {
			out.WriteString(" " + words)
		}
	}
	return out.String()
}
