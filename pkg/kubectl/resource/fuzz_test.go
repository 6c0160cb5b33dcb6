package resource

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzParse: a file gives objects that can be sent, or an error that names it.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "---\n---\n", "null", "5", "{",
		"kind: Pod\napiVersion: v1\nmetadata: {name: a}\n---\nkind: Service\napiVersion: v1\n",
		`{"kind":"List","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1"},{"kind":"Node","apiVersion":"v1"}]}{"kind":"Pod","apiVersion":"v1"}`,
		`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"x"}}]}`,
		`{"kind":"List","apiVersion":"v1","items":[5]}`, "a: &a [*a]", "kind: 5\napiVersion: []\n", "metadata: 5",
		`{"kind":"Pod","metadata":{"name":"a"}}`, `{"kind":"List","apiVersion":"v1","items":{}}`,
	} {
		f.Add([]byte(text), true)
		f.Add([]byte(text), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, check bool) {
		docs, err := parse("f.yaml", bytes.NewReader(data), check)
		if err != nil && !strings.Contains(err.Error(), "f.yaml") {
			t.Fatalf("%q: %v does not name the file", data, err)
		}
		for _, d := range docs {
			if d.Source != "f.yaml" || d.Object == nil {
				t.Fatalf("%q gives %+v", data, d)
			}
			if _, err := d.Object.MarshalJSON(); err != nil && d.Object.GetKind() != "" {
				t.Fatalf("%q gives what cannot be sent: %v", data, err)
			}
		}
	})
}
