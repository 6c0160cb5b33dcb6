package docbounds

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

var bounds = Bounds{Bytes: 1000, Values: 100, Depth: 10}

func TestJSON(t *testing.T) {
	t.Parallel()
	for doc, ok := range map[string]bool{
		`{}`: true,
		strings.Repeat("[", 10) + strings.Repeat("]", 10): true,
		strings.Repeat("[", 11):                           false,
		`{"a":"` + strings.Repeat(`[{,\"`, 200) + `"}`:    true, // text
		"[" + strings.Repeat("0,", 98) + "0]":             true,
		"[" + strings.Repeat("{},", 60) + "{}]":           false,
		strings.Repeat("[]", 99):                          true,
		"":                                                true,
		`"\`:                                              true,
	} {
		if err := JSON([]byte(doc), bounds); (err == nil) != ok || err != nil && !errors.Is(err, ErrBeyond) {
			t.Errorf("%.60s: %v, want ok %v", doc, err, ok)
		}
	}
}

// laughs are lines of aliases, each ten times the one before.
func laughs(lines int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 x\n")
	for i := range lines {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	return b.String()
}

func TestYAML(t *testing.T) {
	t.Parallel()
	for doc, ok := range map[string]bool{
		"a: 1":                                  true,
		"a: [":                                  true, // the decoder's to refuse
		"a: &a [1, 2]\nb: *a\nc: {<<: {d: *a}}": true,
		"a: &a " + strings.Repeat("x", 500) + "\nb: *a": false,
		laughs(1):    true,
		laughs(2):    false,
		laughs(60):   false, // overflows any integer
		"a: &a [*a]": false,
		strings.Repeat("[", 10) + strings.Repeat("]", 10): true,
		strings.Repeat("[", 11) + strings.Repeat("]", 11): false,
		"[" + strings.Repeat("{},", 100) + "]":            false,
		"a: \"" + strings.Repeat("*a,", 200) + "\"":       true, // text
	} {
		if err := YAML([]byte(doc), bounds); (err == nil) != ok || err != nil && !errors.Is(err, ErrBeyond) {
			t.Errorf("%.60s: %v, want ok %v", doc, err, ok)
		}
	}
}
