package explain

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const openapi = `{
"paths": {"/apis/x.io/v1/namespaces/{namespace}/things/{name}": {"get": {"x-kubernetes-group-version-kind": {"group": "x.io", "version": "v1", "kind": "Thing"}}}},
"components": {"schemas": {
 "io.x.v1.Thing": {"type": "object", "description": "A Thing.", "x-kubernetes-group-version-kind": [{"group": "x.io", "version": "v1", "kind": "Thing"}],
  "required": ["spec"],
  "properties": {
   "spec": {"description": "What is wanted.", "allOf": [{"$ref": "#/components/schemas/io.x.v1.Spec"}]},
   "labels": {"type": "object", "additionalProperties": {"type": "string"}},
   "when": {"$ref": "#/components/schemas/io.x.Time"}}},
 "io.x.Time": {"type": "string"},
 "io.x.v1.Spec": {"type": "object", "description": "Spec is a spec.", "properties": {
   "mode": {"type": "string", "enum": ["", "A", "B", "C", "D"]},
   "free": {"type": "object", "additionalProperties": true},
   "children": {"type": "array", "items": {"$ref": "#/components/schemas/io.x.v1.Spec"}}}}}}}`

func explained(t *testing.T, d depth, path ...string) (string, error) {
	t.Helper()
	doc, err := parse([]byte(openapi))
	if err != nil {
		t.Fatal(err)
	}
	gvk, ok := doc.kind(schema.GroupVersionResource{Group: "x.io", Version: "v1", Resource: "things"})
	if !ok {
		t.Fatal("the kind was not found")
	}
	out := &bytes.Buffer{}
	err = (&page{doc: doc, out: out, depth: d}).print(gvk, doc.schemaOf(gvk), path)
	return strings.TrimPrefix(out.String(), "GROUP:      x.io\nKIND:       Thing\nVERSION:    v1\n\n"), err
}

func TestPage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path  []string
		depth depth
		want  string
	}{
		{nil, depth{}, "DESCRIPTION:\n    A Thing.\n    \nFIELDS:\n  labels\t<map[string]string>\n    <no description>\n\n  spec\t<Spec> -required-\n    What is wanted.\n\n  when\t<string>\n    <no description>\n\n\n"},
		{nil, depth{recursive: true, most: 1}, "DESCRIPTION:\n    A Thing.\n    \nFIELDS:\n  labels\t<map[string]string>\n  spec\t<Spec> -required-\n  when\t<string>\n\n"},
		{nil, depth{recursive: true, most: 2}, "DESCRIPTION:\n    A Thing.\n    \nFIELDS:\n  labels\t<map[string]string>\n  spec\t<Spec> -required-\n    children\t<[]Spec>\n    free\t<Object>\n    mode\t<string>\n    enum: \"\", A, B, C, ....\n  when\t<string>\n\n"},
		{[]string{"spec"}, depth{recursive: true},
			"FIELD: spec <Spec>\n\n\nDESCRIPTION:\n    What is wanted.\n    Spec is a spec.\n    \nFIELDS:\n  children\t<[]Spec>\n  free\t<Object>\n  mode\t<string>\n  enum: \"\", A, B, C, ....\n\n"},
		{[]string{"spec", "children", "mode"}, depth{},
			"FIELD: mode <string>\nENUM:\n    \"\"\n    A\n    B\n    C\n    D\n\nDESCRIPTION:\n    <empty>\n\n"},
	} {
		if got, err := explained(t, c.depth, c.path...); err != nil || got != c.want {
			t.Errorf("%v: %v\n%s\nwant\n%s", c.path, err, got, c.want)
		}
	}
	if _, err := explained(t, depth{}, "labels", "x"); err == nil || err.Error() != `field "x" does not exist` {
		t.Errorf("a key of a map: %v", err)
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                  "",
		"aa bb cc":          "aa bb|cc",
		"aa  b cc":          "aa  b|cc",
		"x longerthanlimit": "x|longerthanlimit",
		"longerthanlimit x": "longerthanlimit|x",
	} {
		if got := strings.Join(wrap(line, 5), "|"); got != want {
			t.Errorf("wrap(%q) = %q, want %q", line, got, want)
		}
	}
}

// TestFields: a path may begin with a dot, as a JSONPath does, and no other part of it may be empty.
func TestFields(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"": "", "spec": "spec", ".spec": "spec",
		"spec.containers": "spec|containers", "..spec": "|spec", "spec..containers": "spec||containers"} {
		if got := strings.Join(fields(path), "|"); got != want {
			t.Errorf("fields(%q) = %q, want %q", path, got, want)
		}
	}
}
