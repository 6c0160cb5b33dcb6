package patch

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// spliceDocs are compact documents, and what is none.
func spliceDocs() []string {
	return []string{
		`{}`, `{"a":1}`, `{"a":{"b":{"c":"x","d":[1,{"e":null}]},"n":null},"z":true}`,
		`{"kind":"Pod","metadata":{"name":"p","labels":{"a":"b"}},"spec":{"é":"\"},{"}}`,
		`{"a":1,"a":{}}`, `{"\u0061":{"b":1}}`, `{"a":"\\","b":-1.5e3}`, `{ "a":1}`, `{"a":1 }`, `{"a" :1}`, `{"a":1,}`,
		`{"a"`, `{"a":`, `{"a":1`, `{`, `[]`, `1`, ``, `{"a":{}`, `{"a":1}}`, `{"a":[}`, `{"":0}`, `{"a":}`,
	}
}

func splicePatches() []string {
	return []string{
		`{}`, `{"a":null}`, `{"a":2}`, `{"a":{"b":null}}`, `{"a":{"b":{"c":"y","d":[]}},"z":null}`,
		`{"metadata":{"labels":{"a":null,"c":"d"},"annotations":{"x":"y"}}}`, `{"a":{"b":{"x":null}}}`,
		`{"a":{"n":{"m":1}}}`,
		` { "a" : { "b" : 7 } , "q":[null] } `, `{"a":[1,null]}`, `{"a":"null"}`, `{"<b>":"&"}`,
		`{"b":{"c":{"d":null}}}`, `{"z":{"a":1}}`, `{"a":1,"a":{"b":2}}`, `{"":null}`, `{"spec":{"é":1}}`,
	}
}

// checkSplice: what is spliced is what the library makes.
func checkSplice(t *testing.T, patch, doc string) (ok bool) {
	t.Helper()
	a, err := Read(types.MergePatchType, []byte(patch), nil)
	if err != nil {
		return false
	}
	got, ok := a.Spliced([]byte(doc))
	if !ok {
		return false
	}
	want, err := a.To(t.Context(), []byte(doc))
	if err != nil {
		return true // no JSON: the reader of what came out says so, as spliceDocs show in part
	}
	if !sameJSON(t, got, string(want)) {
		t.Fatalf("%s on %s gives %s, want %s", patch, doc, got, want)
	}
	return true
}

// TestSplice: every patch on every document, and most of them in short.
func TestSplice(t *testing.T) {
	t.Parallel()
	spliced := 0
	for _, patch := range splicePatches() {
		for _, doc := range spliceDocs() {
			if checkSplice(t, patch, doc) {
				spliced++
			}
		}
	}
	if spliced < 70 {
		t.Errorf("only %d are spliced", spliced)
	}
}

// TestSpliceAtRandom: the same for documents and patches that meet often.
func TestSpliceAtRandom(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) any
	object := func(depth int) any {
		o := map[string]any{}
		for range r.IntN(4) {
			o[string(rune('a'+r.IntN(4)))] = value(depth + 1)
		}
		return o
	}
	value = func(depth int) any {
		switch n := r.IntN(10); {
		case n < 5 && depth < 4:
			return object(depth)
		case n == 5:
			return nil
		case n == 6:
			return []any{value(depth + 1), "x"}
		case n == 7:
			return "a\"\\,{}<é"
		}
		return r.IntN(3)
	}
	spliced := 0
	for range 3000 {
		doc, err := json.Marshal(object(0))
		if err != nil {
			t.Fatal(err)
		}
		patch, err := json.Marshal(object(0))
		if err != nil {
			t.Fatal(err)
		}
		if checkSplice(t, string(patch), string(doc)) {
			spliced++
		}
	}
	if spliced < 1000 {
		t.Errorf("only %d are spliced", spliced)
	}
}

// FuzzSplice: no patch makes another document than the library's.
func FuzzSplice(f *testing.F) {
	for _, patch := range splicePatches() {
		for _, doc := range spliceDocs() {
			f.Add(patch, doc)
		}
	}
	f.Fuzz(func(t *testing.T, patch, doc string) { checkSplice(t, patch, doc) })
}
