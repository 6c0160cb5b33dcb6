package resource

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"bonsai/pkg/docbounds"
)

func TestParse(t *testing.T) {
	t.Parallel()
	docs, err := parse("f", strings.NewReader(
		"---\n# only a comment\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n"), true)
	if err != nil || len(docs) != 2 || docs[0].Object.GetName() != "a" || docs[1].Object.GetName() != "b" {
		t.Errorf("got %v, %v", docs, err)
	}
	for _, bad := range []string{"kind: [", "a: b", "{kind: Pod, metadata: {name: a}}",
		"apiVersion: v1\nkind: Pod\nmetadata: {annotations: {a: true}}"} {
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
		if _, err := parse("f", strings.NewReader(text), true); err == nil ||
			err.Error() != `error validating "f": error validating data: `+want+end {
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
	if docs, err := parse("f",
		strings.NewReader("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: &a x, labels: {a: *a}}\n"), true); err !=
		nil || len(docs) != 1 {
		t.Errorf("%v, %v", docs, err)
	}
}

// TestEncodings: a file is UTF-8, or UTF-16 with a byte order mark. Bytes that are no text are replaced.
func TestEncodings(t *testing.T) {
	t.Parallel()
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: é}\n"
	wide := func(order func(uint16) []byte) string {
		out := order(0xfeff)
		for _, c := range utf16.Encode([]rune(manifest)) {
			out = append(out, order(c)...)
		}
		return string(out)
	}
	for name, c := range map[string]struct{ data, want string }{
		"UTF-8":                       {manifest, "é"},
		"UTF-8 with a mark":           {"\xef\xbb\xbf" + manifest, "é"},
		"UTF-16, the low byte first":  {wide(func(c uint16) []byte { return []byte{byte(c), byte(c >> 8)} }), "é"},
		"UTF-16, the high byte first": {wide(func(c uint16) []byte { return []byte{byte(c >> 8), byte(c)} }), "é"},
		"no text":                     {strings.Replace(manifest, "é", "\"x\xffy\"", 1), "x\ufffdy"},
	} {
		path := filepath.Join(t.TempDir(), "m.yaml")
		if err := os.WriteFile(path, []byte(c.data), 0o600); err != nil {
			t.Fatal(err)
		}
		client := &Client{stdin: strings.NewReader(c.data)}
		for _, from := range []string{path, "-"} {
			docs, err := client.Read(t.Context(), Files{Names: []string{from}})
			if err != nil || len(docs) != 1 {
				t.Errorf("%s from %s: %v, %v", name, from, docs, err)
				continue
			}
			if data := docs[0].Object.Object["data"].(map[string]any); data["k"] != c.want {
				t.Errorf("%s from %s: %q, want %q", name, from, data["k"], c.want)
			}
		}
	}
}

// TestListInList: a list in a list is refused; its objects would be left out.
func TestListInList(t *testing.T) {
	t.Parallel()
	const text = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: in}}]}\n" +
		"- {apiVersion: v1, kind: ConfigMap, metadata: {name: out}}\n"
	docs, err := parse("f", strings.NewReader(text), true)
	if err == nil || err.Error() != "*unstructured.Unstructured is not a list: no Items field in this object" ||
		len(docs) > 0 {
		t.Errorf("%v, %v", docs, err)
	}
}

// TestKustomizationInOrder: what others need comes first, whatever the order of the files.
func TestKustomizationInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: n}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: n}\n---\n"+
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: foos.x.io}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n")
	for options, want := range map[string]string{
		"":                             "Namespace CustomResourceDefinition ConfigMap Deployment",
		"sortOptions: {order: fifo}\n": "Deployment ConfigMap CustomResourceDefinition Namespace",
	} {
		write("kustomization.yaml", options+"resources: [a.yaml]\n")
		docs, err := (&Client{}).Read(t.Context(), Files{Kustomize: dir})
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, d := range docs {
			kinds = append(kinds, d.Object.GetKind())
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%q: %s, want %s", options, got, want)
		}
	}
}
