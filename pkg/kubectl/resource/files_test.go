package resource

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	docs, err := Parse("f", strings.NewReader("---\n# only a comment\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n"))
	if err != nil || len(docs) != 2 || docs[0].Object.GetName() != "a" || docs[1].Object.GetName() != "b" {
		t.Errorf("got %v, %v", docs, err)
	}
	for _, bad := range []string{"kind: [", "a: b", "apiVersion: v1\nkind: Pod\nmetadata: {annotations: {a: true}}"} {
		if _, err := Parse("f", strings.NewReader(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
