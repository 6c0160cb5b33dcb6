package patch

import (
	"encoding/json"
	"reflect"
	"testing"
)

// bareDocs are objects with managedFields where they belong, elsewhere, or nowhere, and what is no object.
func bareDocs() []string {
	return []string{
		`{"kind":"Pod","metadata":{"name":"a","managedFields":[{"manager":"m","fieldsV1":{"f:a":{"k:{\"name\":\"]}\"}":{}}}}]},"spec":{"managedFields":[1]}}`,
		`{"metadata":{"managedFields":[],"name":"a"}}`, `{"metadata":{"managedFields":null}}`,
		`{"metadata":{"name":"a","managedFields":[{}],"uid":"u"},"n":1}`,
		`{"metadata":{"annotations":{"managedFields":"x","a\\":"\"},{"},"generation":3,"managedFields":[true]},"a":[]}`,
		`{"metadata":{"name":"a"}}`,
		`{"spec":{"metadata":{"managedFields":[1]}}}`, `{"metadata":null}`, `{"metadata":"managedFields"}`, `{}`, `[]`,
		`3`, ``, `{"metadata":{"managedFields":[`, `{"a"`, `{"metadata":{"managedFields"`, `{"a":"\`,
	}
}

func checkBare(t *testing.T, doc string) {
	t.Helper()
	got := Bare([]byte(doc))
	var want map[string]any
	if json.Unmarshal([]byte(doc), &want) != nil {
		return // no object: it is enough that nothing breaks
	}
	var is map[string]any
	if err := json.Unmarshal(got, &is); err != nil {
		t.Fatalf("%s became %s: %v", doc, got, err)
	}
	if reflect.DeepEqual(is, want) {
		return // nothing was cut, as of JSON that is not compact
	}
	metadata, _ := want["metadata"].(map[string]any)
	delete(metadata, "managedFields")
	if !reflect.DeepEqual(is, want) {
		t.Fatalf("%s became %s", doc, got)
	}
}

// TestBare: nothing but metadata.managedFields goes, and it does.
func TestBare(t *testing.T) {
	t.Parallel()
	for _, doc := range bareDocs() {
		checkBare(t, doc)
	}
	for _, doc := range bareDocs()[:5] {
		if got := string(Bare([]byte(doc))); len(got) == len(doc) {
			t.Errorf("%s is left as it is", doc)
		}
	}
}

// FuzzBare: no document is damaged.
func FuzzBare(f *testing.F) {
	for _, doc := range bareDocs() {
		f.Add(doc)
	}
	f.Fuzz(checkBare)
}
