package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	if errs := set.Validate(t.Context(), map[string]any{"a": "b"}); errs != nil {
		t.Error(errs)
	}
	if errs := set.ValidateUpdate(t.Context(), map[string]any{"a": "b"}, map[string]any{}); errs != nil {
		t.Error(errs)
	}
}

// TestMostExpressions: a request cannot make more programs than fit into memory.
func TestMostExpressions(t *testing.T) {
	t.Parallel()
	with := func(n int) field.ErrorList {
		p := &apiextensionsv1.JSONSchemaProps{Type: "object"}
		for range n / 2 {
			p.XValidations = append(p.XValidations,
				apiextensionsv1.ValidationRule{Rule: "true", MessageExpression: "'a'"})
		}
		return Check(p, field.NewPath("schema"))
	}
	if errs := with(mostExpressions); len(errs) > 0 {
		t.Errorf("as many as may be: %v", errs)
	}
	want := "schema: Forbidden: must not have more than 1000 expressions in x-kubernetes-validations, has 1002"
	if errs := with(mostExpressions + 2); len(errs) != 1 || errs[0].Error() != want {
		t.Errorf("got %v, want %s", errs, want)
	}
}

// TestTimeIsOver: rules that take long for what they cost end with their time, and the object is refused.
func TestTimeIsOver(t *testing.T) {
	t.Parallel()
	rule := apiextensionsv1.ValidationRule{Rule: "self.all(x, self.all(y, x + y != ''))"}
	s, err := structural.Compile(
		&apiextensionsv1.JSONSchemaProps{Type: "object",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"l": {Type: "array",
				Items: &apiextensionsv1.JSONSchemaPropsOrArray{
					Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
				XValidations: apiextensionsv1.ValidationRules{rule, rule}}}})
	if err != nil {
		t.Fatal(err)
	}
	list := make([]any, 200)
	for i := range list {
		list[i] = "a"
	}
	obj := map[string]any{"l": list}
	if errs := Compile(s).Validate(t.Context(), obj); len(errs) != 0 {
		t.Errorf("in time: %v", errs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	const want = "l: Invalid value: \"array\": validation failed due to running out of time, no further validation rules will be run"
	if errs := Compile(s).Validate(ctx, obj); len(errs) != 1 || errs[0].Error() != want {
		t.Errorf("out of time: %v", errs)
	}
}

// TestDefaultsShareABudget: what judges the defaults of a schema costs no more than what judges an object, however many
// there are.
func TestDefaultsShareABudget(t *testing.T) {
	t.Parallel()
	list := make([]string, 30)
	raw, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	with := func(defaults int) field.ErrorList {
		p := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
		for i := range defaults {
			p.Properties[fmt.Sprintf("p%03d", i)] = apiextensionsv1.JSONSchemaProps{Type: "array",
				MaxItems: new(int64(30)), Default: &apiextensionsv1.JSON{Raw: raw},
				Items: &apiextensionsv1.JSONSchemaPropsOrArray{
					Schema: &apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: new(int64(1))}},
				XValidations: apiextensionsv1.ValidationRules{{Rule: "self.all(x, self.all(y, x == y))"}}}
		}
		return structural.Check(p, nil, (&defaultsCheck{budget: 50_000}).check)
	}
	if errs := with(2); len(errs) > 0 {
		t.Fatal(errs)
	}
	over := 0
	for _, err := range with(100) {
		if strings.Contains(err.Detail, "running out of cost budget") {
			over++
		}
	}
	if over != 1 {
		t.Errorf("it is said %d times that the budget is spent", over)
	}
}

// FuzzCheck: whatever a schema says, it is judged without a panic, and what is accepted compiles.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"type": "object", "properties": {"a": {"type": "string", "default": "b", "maxLength": 3, "x-kubernetes-validations": [{"rule": "self == oldSelf", "fieldPath": ".a", "messageExpression": "'a' + self"}]}}}`))
	f.Add([]byte(`{"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}}}}`))
	f.Add([]byte(`{"type": "object", "additionalProperties": {"allOf": [{"not": {}}], "items": {"$ref": "a"}}, "x-kubernetes-validations": [{"rule": "self.all(x, self[x] in [1])"}]}`))
	f.Add([]byte(`{"type": "object", "properties": {"m": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}, "x-kubernetes-validations": [{"rule": "size(self) > 1", "optionalOldSelf": true}]}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var p apiextensionsv1.JSONSchemaProps
		if json.Unmarshal(raw, &p) != nil {
			return
		}
		if len(Check(&p, field.NewPath("schema"))) > 0 {
			return
		}
		s, err := structural.Compile(&p)
		if err != nil {
			t.Fatalf("%s is accepted, and does not compile: %v", raw, err)
		}
		Compile(s).Validate(t.Context(),
			map[string]any{"apiVersion": "v1", "kind": "A", "a": "b", "m": map[string]any{"a": int64(1)},
				"l": []any{map[string]any{"k": "a"}}})
	})
}

// TestFootprint: what a rule keeps once it is compiled is little more than the library's program, which is most of it.
func TestFootprint(t *testing.T) {
	text := `{"type": "object", "properties": {"spec": {"type": "object", "properties": {`
	for i := range 20 {
		if i > 0 {
			text += ","
		}
		text += `"` + string(rune('a'+i)) +
			`": {"type": "string", "maxLength": 20, "x-kubernetes-validations": [{"rule": "self.startsWith('a') && self.size() > 1"}]}`
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
