package typecheck

import (
	"encoding/json"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// TestInline has the answers that k8s.io/apiserver's resolver gave to the same schemas.
func TestInline(t *testing.T) {
	for _, test := range []struct{ name, schemas, want string }{
		{"references in properties, items and maps, and inside themselves", `{
			"a":{"type":"object","description":"A","properties":{
				"self":{"$ref":"#/components/schemas/a"},
				"b":{"description":"mine","default":{},"allOf":[{"$ref":"#/components/schemas/b"}]},
				"list":{"type":"array","items":{"default":{},"allOf":[{"$ref":"#/components/schemas/b"}]}},
				"m":{"type":"object","additionalProperties":{"$ref":"#/components/schemas/b"}}}},
			"b":{"type":"string","description":"B"}}`,
			`{"description":"A","type":"object","properties":{"b":{"description":"B","type":"string"},"list":{"type":"array","items":{"description":"B","type":"string"}},"m":{"type":"object","additionalProperties":{"description":"B","type":"string"}},"self":{"description":"A","type":"object","properties":{"b":{"description":"B","type":"string"},"list":{"type":"array","items":{"description":"B","type":"string"}},"m":{"type":"object","additionalProperties":{"description":"B","type":"string"}},"self":{"type":"object"}}}}}`},
		{"two ways into a circle", `{
			"a":{"type":"object","properties":{"x":{"$ref":"c"}}},
			"c":{"type":"object","properties":{"back":{"$ref":"c"},"l":{"type":"array","items":{"$ref":"c"}}}}}`,
			`{"type":"object","properties":{"x":{"type":"object","properties":{"back":{"type":"object"},"l":{"type":"array","items":{"type":"object"}}}}}}`},
		{"the root is a reference", `{"a":{"$ref":"b"},"b":{"type":"string"}}`, `{"type":"string"}`},
		{"the first of several",
			`{"a":{"type":"object","properties":{"x":{"allOf":[{"$ref":"c"},{"$ref":"d"}]}}},"c":{"type":"object"},"d":{"type":"string"}}`,
			`{"type":"object","properties":{"x":{"type":"object"}}}`},
		{"one that is not there", `{"a":{"type":"object","properties":{"x":{"$ref":"gone"}}}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var schemas map[string]*spec.Schema
			if err := json.Unmarshal([]byte(test.schemas), &schemas); err != nil {
				t.Fatal(err)
			}
			before, err := json.Marshal(schemas)
			if err != nil {
				t.Fatal(err)
			}
			inlined, err := (&refs{schemas: schemas, open: map[string]bool{}}).inline(schemas["a"])
			got := ""
			if err == nil {
				b, err := json.Marshal(inlined)
				if err != nil {
					t.Fatal(err)
				}
				got = string(b)
			}
			if got != test.want {
				t.Errorf("got  %s (%v)\nwant %s", got, err, test.want)
			}
			if after, err := json.Marshal(schemas); err != nil || string(after) != string(before) {
				t.Errorf("the schemas were changed (%v)", err)
			}
		})
	}
}
