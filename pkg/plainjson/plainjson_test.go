package plainjson

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestEscape: whatever text an object has, its JSON says the same afterwards, can be read as YAML, and has no control
// characters.
func TestEscape(t *testing.T) {
	t.Parallel()
	var all []rune
	for r := rune(0); r <= 0x10ffff; r += 1 + r>>16*0x3fff { // all of the first plane, and some of each other one
		if r < 0xd800 || r > 0xdfff {
			all = append(all, r)
		}
	}
	text := string(all)
	doc, err := json.Marshal(map[string]string{"k": text})
	if err != nil {
		t.Fatal(err)
	}
	before := string(doc)
	escaped := Escape(doc)
	if string(doc) != before {
		t.Error("the document was changed in place")
	}
	for _, r := range string(escaped) {
		if r < 0x20 || r >= 0x7f && r <= 0x9f {
			t.Errorf("%q is left", r)
		}
	}
	out, err := yaml.JSONToYAML(escaped)
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() (map[string]string, error){
		"JSON": func() (m map[string]string, err error) { return m, json.Unmarshal(escaped, &m) },
		"YAML": func() (m map[string]string, err error) { return m, yaml.Unmarshal(out, &m) },
	} {
		m, err := read()
		if err != nil || m["k"] != text {
			t.Errorf("%s: another text, %v", name, err)
		}
	}
	plain := []byte(`{"a":"ü€😀\u0000"}`)
	if same := Escape(plain); &same[0] != &plain[0] {
		t.Error("a document without such characters was copied")
	}
}
