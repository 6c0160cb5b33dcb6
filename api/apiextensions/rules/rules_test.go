package rules

import (
	"encoding/json"
	"runtime"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"bonsai/api/apiextensions/structural"
)

func schema(t testing.TB, text string) *structural.Schema {
	t.Helper()
	var p apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	if errs := Check(&p, nil); len(errs) > 0 {
		t.Fatal(errs)
	}
	s, err := structural.Compile(&p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestNoRules: a schema without rules makes nothing, and asks nothing.
func TestNoRules(t *testing.T) {
	t.Parallel()
	set := Compile(schema(t, `{"type": "object", "properties": {"a": {"type": "string"}}}`))
	if set != nil {
		t.Fatal("a set of no rules")
	}
	if errs := set.Validate(map[string]any{"a": "b"}); errs != nil {
		t.Error(errs)
	}
	if errs := set.ValidateUpdate(map[string]any{"a": "b"}, map[string]any{}); errs != nil {
		t.Error(errs)
	}
}

// TestFootprint: what a rule keeps once it is compiled is little more than the library's program, which is most of it.
func TestFootprint(t *testing.T) {
	text := `{"type": "object", "properties": {"spec": {"type": "object", "properties": {`
	for i := range 20 {
		if i > 0 {
			text += ","
		}
		text += `"` + string(rune('a'+i)) + `": {"type": "string", "maxLength": 20, "x-kubernetes-validations": [{"rule": "self.startsWith('a') && self.size() > 1"}]}`
	}
	s := schema(t, text+`}}}}`)
	Compile(s) // the library's own environment is made once
	const n = 10
	var before, after runtime.MemStats
	sets := make([]*Set, n)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range sets {
		sets[i] = Compile(s)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / n
	t.Logf("20 rules take %d KB", each>>10)
	if each > 20*64<<10 {
		t.Errorf("20 rules take %d bytes", each)
	}
	runtime.KeepAlive(sets)
}
