package structural

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// TestAgainstLibrary holds the validator to kube-openapi's, which Kubernetes itself uses, on random schemas and values.
func TestAgainstLibrary(t *testing.T) {
	t.Parallel()
	invalid := 0
	for seed := range uint64(6_000) {
		if compareWithLibrary(t, rand.New(rand.NewPCG(seed, 7))) {
			invalid++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if invalid < 1_000 || invalid > 5_500 {
		t.Errorf("%d of 6,000 values are invalid: the test compares too little", invalid)
	}
}

// compareWithLibrary reports whether the value was invalid.
func compareWithLibrary(t *testing.T, r *rand.Rand) bool {
	t.Helper()
	below := randomSchema(r, r.IntN(3)+1)
	props := &apiextensionsv1.JSONSchemaProps{Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": *below}}
	value := map[string]any{"spec": randomValue(r, 3)}
	raw, err := json.Marshal(props)
	if err != nil {
		t.Fatal(err)
	}
	var plain spec.Schema
	if err := json.Unmarshal(raw, &plain); err != nil {
		t.Fatal(err)
	}
	asKubernetes(&plain)
	s, err := Compile(props)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	want := validate.NewSchemaValidator(&plain, nil, "", strfmt.Default).Validate(value)
	var wants, got []string
	for _, e := range want.Errors {
		wants = append(wants, e.Error())
	}
	errs := s.Validate(nil, value, nil)
	if (len(errs) == 0) != (len(wants) == 0) {
		t.Errorf("%s\n%v: got %v, want %v", raw, value, errs, wants)
		return false
	}
	for _, e := range errs {
		got = append(got, e.Error())
	}
	slices.Sort(got)
	slices.Sort(wants)
	// The words of required, enumerated, too long and too many values are the API's own: only their number is compared.
	if len(got) != len(wants) {
		t.Errorf("%s\n%v: got\n%s\nwant\n%s", raw, value, strings.Join(got, "\n"), strings.Join(wants, "\n"))
	}
	for _, w := range wants {
		if !strings.Contains(w, " is required") && !strings.Contains(w, "should be one of") &&
			!strings.Contains(w, "at most") && !slices.ContainsFunc(got, func(g string) bool {
			return strings.Contains(g, w)
		}) {
			t.Errorf("%s\n%v: got\n%s\nwithout\n%s", raw, value, strings.Join(got, "\n"), w)
		}
	}
	return len(wants) > 0
}

// asKubernetes makes integers of what JSON made floats, and takes away formats that say nothing of a type, as
// Kubernetes does with schemas.
func asKubernetes(s *spec.Schema) {
	kind := ""
	if len(s.Type) > 0 {
		kind = s.Type[0]
	}
	if !knownFormat(kind, s.Format) {
		s.Format = ""
	}
	for i, e := range s.Enum {
		if v, err := decode(mustJSON(e)); err == nil {
			s.Enum[i] = v
		}
	}
	for name, p := range s.Properties {
		asKubernetes(&p)
		s.Properties[name] = p
	}
	for _, list := range [][]spec.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range list {
			asKubernetes(&list[i])
		}
	}
	if s.Not != nil {
		asKubernetes(s.Not)
	}
	if s.Items != nil && s.Items.Schema != nil {
		asKubernetes(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		asKubernetes(s.AdditionalProperties.Schema)
	}
}

var propertyNames = []string{"a", "b", "c", "d"}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// randomSchema is not always structural: the validator does not care.
func randomSchema(r *rand.Rand, depth int) *apiextensionsv1.JSONSchemaProps {
	p := &apiextensionsv1.JSONSchemaProps{
		Type: pick(r, "object", "object", "array", "string", "integer", "number", "boolean", "")}
	if depth > 1 && r.IntN(4) > 0 {
		p.Type = "object"
	}
	p.Nullable = r.IntN(5) == 0
	maybe := func(n int) bool { return r.IntN(n) == 0 }
	float := func() *float64 { f := pick(r, 0, 1, 2, 3, 1.5, 0.1, 10, -1); return &f }
	integer := func() *int64 { i := int64(r.IntN(4)); return &i }
	if maybe(4) {
		p.Minimum, p.ExclusiveMinimum = float(), maybe(2)
	}
	if maybe(4) {
		p.Maximum, p.ExclusiveMaximum = float(), maybe(2)
	}
	if maybe(8) {
		f := pick(r, 1, 2, 0.5, 3, 0.1)
		p.MultipleOf = &f
	}
	if maybe(4) {
		p.MinLength = integer()
	}
	if maybe(4) {
		p.MaxLength = integer()
	}
	if maybe(5) {
		p.Pattern = pick(r, "^a+$", "b", "^$", "[0-9]{2}")
	}
	if maybe(4) {
		p.Format = pick(r, "int32", "int64", "float", "double", "date", "ipv4", "uuid", "byte", "duration", "date-time",
			"unknown")
	}
	if maybe(6) {
		for range r.IntN(4) {
			p.Enum = append(p.Enum, apiextensionsv1.JSON{Raw: mustJSON(randomValue(r, 1))})
		}
	}
	if maybe(4) {
		p.MinItems = integer()
	}
	if maybe(4) {
		p.MaxItems = integer()
	}
	if maybe(4) {
		p.MinProperties = integer()
	}
	if maybe(4) {
		p.MaxProperties = integer()
	}
	if maybe(3) {
		p.Required = []string{pick(r, propertyNames...)}
	}
	if depth == 0 {
		return p
	}
	if maybe(2) || depth > 1 {
		p.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		for range r.IntN(4) {
			p.Properties[pick(r, propertyNames...)] = *randomSchema(r, depth-1)
		}
	}
	if maybe(3) {
		p.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: randomSchema(r, depth-1)}
	}
	if maybe(4) {
		p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: randomSchema(r, depth-1)}
	}
	some := func() (out []apiextensionsv1.JSONSchemaProps) {
		for range 1 + r.IntN(3) {
			out = append(out, *randomSchema(r, depth-1))
		}
		return out
	}
	if maybe(6) {
		p.AllOf = some()
	}
	if maybe(6) {
		p.AnyOf = some()
	}
	if maybe(6) {
		p.OneOf = some()
	}
	if maybe(8) {
		p.Not = randomSchema(r, depth-1)
	}
	return p
}

func randomValue(r *rand.Rand, depth int) any {
	if depth == 3 && r.IntN(8) > 0 || depth > 0 && r.IntN(3) == 0 {
		out := map[string]any{}
		for range r.IntN(4) {
			out[pick(r, propertyNames...)] = randomValue(r, depth-1)
		}
		return out
	}
	if depth > 0 && r.IntN(4) == 0 {
		out := []any{}
		for range r.IntN(4) {
			out = append(out, randomValue(r, depth-1))
		}
		return out
	}
	return pick[any](r, nil, true, "", "a", "ab", "aaaa", "12", "ü", "1.2.3.4", "2020-01-02", int64(0), int64(1),
		int64(2), int64(3), int64(1<<40), 1.5, 2.0, 0.3, 1e30, "5s")
}

func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprint(v, err))
	}
	return raw
}
