package customresource

import (
	"math/rand/v2"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPruneAgainstOracle holds pruning to the plainest way of saying it.
func TestPruneAgainstOracle(t *testing.T) {
	t.Parallel()
	dropped := 0
	for seed := range uint64(3_000) {
		r := rand.New(rand.NewPCG(seed, 11))
		props := randomStructural(r, 3)
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": *props}}}}}
		kind, err := compile(crd, "v1")
		if err != nil {
			t.Fatal(err)
		}
		value := randomObject(r, 4)
		u := &unstructured.Unstructured{Object: map[string]any{"spec": value}}
		want, lost := prunedPlainly(props, false,
			(&unstructured.Unstructured{Object: map[string]any{"v": value}}).DeepCopy().Object["v"])
		paths, err := kind.Prune(u)
		if err != nil {
			t.Fatal(err)
		}
		if got := mustJSON(t, u.Object["spec"]); got != mustJSON(t, want) || len(paths) != lost {
			t.Fatalf("seed %d: %s\ngot %s, dropped %q\nwant %s, dropped %d", seed, mustJSON(t, props), got, paths,
				mustJSON(t, want), lost)
		}
		if lost > 0 {
			dropped++
		}
	}
	if dropped < 1_000 || dropped > 2_950 {
		t.Errorf("%d of 3,000 objects lose something: the test compares too little", dropped)
	}
}

// prunedPlainly is v with what p knows of it alone, or with all if p keeps, or the list that v is of; and how many
// fields were dropped.
func prunedPlainly(p *apiextensionsv1.JSONSchemaProps, keeps bool, v any) (out any, lost int) {
	keeps = keeps || p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields
	switch v := v.(type) {
	case []any:
		items := []any{}
		for _, item := range v {
			below := &apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: &keeps}
			if p.Items != nil {
				below = p.Items.Schema
			}
			kept, n := prunedPlainly(below, keeps, item)
			items, lost = append(items, kept), lost+n
		}
		return items, lost
	case map[string]any:
		object := map[string]any{}
		for name, value := range v {
			below, known := p.Properties[name]
			if a := p.AdditionalProperties; !known && a != nil {
				below, known = apiextensionsv1.JSONSchemaProps{Nullable: true}, true
				if a.Schema != nil {
					below = *a.Schema
				}
			}
			switch {
			case known && value == nil && !below.Nullable: // nulls are no values, but not told of
			case known:
				kept, n := prunedPlainly(&below, false, value)
				object[name], lost = kept, lost+n
			case keeps:
				object[name] = value
			default:
				lost++
			}
		}
		return object, lost
	}
	return v, 0
}

func randomStructural(r *rand.Rand, depth int) *apiextensionsv1.JSONSchemaProps {
	keep := true
	p := &apiextensionsv1.JSONSchemaProps{Type: "string", Nullable: r.IntN(4) == 0}
	if depth == 0 {
		return p
	}
	if r.IntN(5) == 0 {
		p.XPreserveUnknownFields = &keep
	}
	switch r.IntN(4) {
	case 0:
		p.Type, p.Items = "array", &apiextensionsv1.JSONSchemaPropsOrArray{Schema: randomStructural(r, depth-1)}
	case 1:
		p.Type, p.AdditionalProperties = "object", &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}
		if r.IntN(3) > 0 {
			p.AdditionalProperties.Schema = randomStructural(r, depth-1)
		}
	default:
		p.Type, p.Properties = "object", map[string]apiextensionsv1.JSONSchemaProps{}
		for range r.IntN(4) {
			p.Properties[string(rune('a'+r.IntN(4)))] = *randomStructural(r, depth-1)
		}
	}
	return p
}

func randomObject(r *rand.Rand, depth int) any {
	switch n := r.IntN(6); {
	case depth == 4 || depth > 0 && n < 3:
		out := map[string]any{}
		for range r.IntN(4) {
			out[string(rune('a'+r.IntN(5)))] = randomObject(r, depth-1)
		}
		return out
	case depth > 0 && n == 3:
		out := []any{}
		for range r.IntN(3) {
			out = append(out, randomObject(r, depth-1))
		}
		return out
	case n == 4:
		return nil
	}
	return "text"
}
