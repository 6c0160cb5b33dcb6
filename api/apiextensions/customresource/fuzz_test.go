package customresource

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FuzzWrite: whatever an object holds, what is written of it is stable: pruning and defaulting a second time changes nothing, and nothing
// panics.
func FuzzWrite(f *testing.F) {
	crd, raw := certificate(f, true)
	kind, err := Compile(crd, "v1")
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
			if errs := kind.ValidateUpdate(t.Context(), &u, u.DeepCopy()); len(errs) > 0 {
				t.Fatalf("%s: a good object may not stay as it is: %v", raw, errs)
			}
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
