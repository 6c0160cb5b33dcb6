package customresource

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/api/apiextensions"
)

// FuzzWrite: whatever an object holds, what is written of it is stable: pruning and defaulting a second time changes
// nothing, and nothing panics.
func FuzzWrite(f *testing.F) {
	crd, raw := certificate(f, true)
	kind, err := compile(crd, "v1")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"apiVersion": "a/v1", "kind": "A", "spec": {"issuerRef": null, "solvers": [null, {"template": []}], "zz": 1}}`))
	f.Add([]byte(`{"apiVersion": "a/v1", "kind": "A", "spec": {"secretName": "a", "issuerRef": {"name": "a"}, "isCA": true}, "status": {"conditions": [{"type": "a"}, {"type": "a"}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var u unstructured.Unstructured
		if u.UnmarshalJSON(raw) != nil || u.IsList() {
			return
		}
		if _, err := kind.Prune(&u); err != nil {
			return
		}
		kind.Default(&u)
		once := mustJSON(t, u.Object)
		lost, err := kind.Prune(&u)
		if err != nil || len(lost) > 0 {
			t.Fatalf("%s: a second pruning drops %q: %v", raw, lost, err)
		}
		kind.Default(&u)
		if again := mustJSON(t, u.Object); again != once {
			t.Fatalf("%s: a second time makes\n%s\nof\n%s", raw, again, once)
		}
		errs := kind.Validate(t.Context(), &u)
		if now := mustJSON(t, u.Object); now != once {
			t.Fatalf("%s: validation changed the object", raw)
		}
		if len(errs) == 0 {
			if errs, _ := kind.ValidateUpdate(t.Context(), &u, u.DeepCopy()); len(errs) > 0 {
				t.Fatalf("%s: a good object may not stay as it is: %v", raw, errs)
			}
		}
	})
}

// FuzzSchema: FuzzWrite with any schema that a definition may have.
func FuzzSchema(f *testing.F) {
	for _, schema := range []string{
		`{"type":"object","properties":{"spec":{"type":"object","default":{},"properties":{"a":{"type":"integer","default":1},"n":{"type":"string","nullable":true,"default":null}}}}}`,
		`{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"object","properties":{"b":{"x-kubernetes-int-or-string":true}}}}}}}`,
		`{"type":"object","properties":{"spec":{"type":"object","additionalProperties":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string","default":"x"}}}}}}}`,
		`{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},"l":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}`,
	} {
		for _, object := range []string{
			`{"spec":{"a":null,"n":null,"zz":[{"k":"x","y":1},{}]},"l":["a","a",1]}`,
			`{"spec":{"apiVersion":"v1","kind":"Pod","metadata":{"name":1,"labels":{"a":null},"zz":1}}}`,
			`{"spec":[],"l":{}}`,
		} {
			f.Add([]byte(schema), []byte(object))
		}
	}
	f.Fuzz(func(t *testing.T, schema, object []byte) {
		var props apiextensionsv1.JSONSchemaProps
		u := unstructured.Unstructured{}
		if json.Unmarshal(schema, &props) != nil || json.Unmarshal(object, &u.Object) != nil || u.Object == nil {
			return
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Name, crd.Spec.Group, crd.Spec.Scope = "as.a.example.com", "a.example.com", apiextensionsv1.NamespaceScoped
		crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "as", Singular: "a", Kind: "A",
			ListKind: "AList"}
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &props}}}
		if apiextensions.Default(crd); len(apiextensions.Validate(crd)) > 0 {
			return
		}
		kind, err := compile(crd, "v1")
		if err != nil {
			t.Fatalf("%s is accepted, and does not compile: %v", schema, err)
		}
		u.SetAPIVersion("a.example.com/v1")
		u.SetKind("A")
		delete(u.Object, "metadata")
		u.SetName("n")
		if _, err := kind.Prune(&u); err != nil {
			return
		}
		kind.Default(&u)
		once := mustJSON(t, u.Object)
		if lost, err := kind.Prune(&u); err != nil || len(lost) > 0 {
			t.Fatalf("%s: of %s a second pruning drops %q: %v", schema, object, lost, err)
		}
		kind.Default(&u)
		if again := mustJSON(t, u.Object); again != once {
			t.Fatalf("%s: a second time makes\n%s\nof\n%s", schema, again, once)
		}
		kind.Validate(t.Context(), &u)
		if now := mustJSON(t, u.Object); now != once {
			t.Fatalf("%s: validation changed %s", schema, object)
		}
		if _, err := OpenAPI(crd, "v1"); err != nil {
			t.Fatalf("%s cannot be told: %v", schema, err)
		}
	})
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
