package resource

import (
	"errors"
	"strings"
	"testing"

	"bonsai/pkg/docbounds"
)

func TestParse(t *testing.T) {
	t.Parallel()
	docs, err := parse("f", strings.NewReader("---\n# only a comment\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n"), true)
	if err != nil || len(docs) != 2 || docs[0].Object.GetName() != "a" || docs[1].Object.GetName() != "b" {
		t.Errorf("got %v, %v", docs, err)
	}
	for _, bad := range []string{"kind: [", "a: b", "{kind: Pod, metadata: {name: a}}", "apiVersion: v1\nkind: Pod\nmetadata: {annotations: {a: true}}"} {
		if _, err := parse("f", strings.NewReader(bad), false); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// TestCheck: what the types of objects lack is said at once.
func TestCheck(t *testing.T) {
	t.Parallel()
	const end = "; if you choose to ignore these errors, turn validation off with --validate=false"
	for text, want := range map[string]string{
		"a: b":           "[apiVersion not set, kind not set]",
		"kind: Pod":      "apiVersion not set",
		"apiVersion: v1": "kind not set",
		"[1]":            "invalid object to validate",
		"apiVersion: v1\nkind: List\nitems: [{kind: Pod}, {apiVersion: v1}]": "[apiVersion not set, kind not set]",
	} {
		if _, err := parse("f", strings.NewReader(text), true); err == nil || err.Error() != `error validating "f": error validating data: `+want+end {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestParseBomb: a manifest whose aliases would fill the memory is refused; one that only uses aliases is read.
func TestParseBomb(t *testing.T) {
	t.Parallel()
	bomb := "---\na: &a \"" + strings.Repeat("x", 100_000) + "\"\nb: [" + strings.Repeat("*a,", 10_000) + "*a]\n"
	if _, err := parse("f", strings.NewReader(bomb), false); !errors.Is(err, docbounds.ErrBeyond) {
		t.Errorf("%v, want %v", err, docbounds.ErrBeyond)
	}
	if docs, err := parse("f", strings.NewReader("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: &a x, labels: {a: *a}}\n"), true); err != nil || len(docs) != 1 {
		t.Errorf("%v, %v", docs, err)
	}
}
