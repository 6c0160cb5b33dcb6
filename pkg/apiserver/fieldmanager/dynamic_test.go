package fieldmanager

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/registry"
)

// thingSchema has every kind of list, map and struct that a custom resource can have.
const thingSchema = `{"type":"object","properties":{
"spec":{"type":"object","properties":{
 "size":{"type":"integer"},"share":{"type":"number"},"on":{"type":"boolean"},"word":{"type":"string","nullable":true},"port":{"x-kubernetes-int-or-string":true},
 "labels":{"type":"object","additionalProperties":{"type":"string"}},
 "whole":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"a":{"type":"string"},"b":{"type":"integer"}}},
 "parts":{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}}}},
 "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
 "plain":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}},
 "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
 "numbers":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}},
 "rates":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name","share"],"items":{"type":"object","required":["name"],"properties":{
  "name":{"type":"string"},"share":{"type":"number","default":0.5},"word":{"type":"string"}}}},
 "ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port","protocol"],"items":{"type":"object","required":["port"],"properties":{
  "port":{"type":"integer"},"protocol":{"type":"string","default":"a"},"word":{"type":"string"},"set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}}}},
"status":{"type":"object","properties":{"ready":{"type":"integer"},"conditions":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["type"],"items":{"type":"object","required":["type"],"properties":{"type":{"type":"string"},"status":{"type":"string"}}}}}}}}`

// thingRow returns a row of objects with that schema, and the schema.
func thingRow(t testing.TB) (*resources.Row, *spec.Schema) {
	t.Helper()
	own := &spec.Schema{}
	if err := json.Unmarshal([]byte(thingSchema), own); err != nil {
		t.Fatal(err)
	}
	empty := func() runtime.Object { return &unstructured.Unstructured{Object: map[string]any{}} }
	schemaOf := func() (*spec.Schema, error) { return own, nil }
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	return &resources.Row{GVK: gvk, Resource: "things", New: empty,
		Versions:     []resources.Version{{Name: "v1", New: empty, Schema: schemaOf}},
		Subresources: []resources.Subresource{{Name: "status", Strategy: &resources.Strategy{}}}}, own
}

// grow returns a random value of a schema. It changes about one in sparse parts of the old value.
func (r random) grow(s *spec.Schema, old any, sparse int) any {
	if old != nil && r.IntN(sparse) != 0 && len(s.Properties) == 0 {
		return old
	}
	if s.Nullable && r.IntN(5) == 0 {
		return nil
	}
	switch {
	case len(s.Properties) > 0:
		was, _ := old.(map[string]any)
		out := map[string]any{}
		for name, p := range s.Properties {
			required := slices.Contains(s.Required, name)
			if v, has := was[name]; has && (required || r.IntN(3*sparse) != 0) {
				out[name] = v
				if !required {
					out[name] = r.grow(&p, v, sparse)
				}
			} else if required || r.IntN(2) == 0 {
				out[name] = r.grow(&p, nil, 1)
			}
		}
		return out
	case s.AdditionalProperties != nil:
		out := map[string]any{}
		for range r.IntN(3) {
			out[r.word()] = r.grow(s.AdditionalProperties.Schema, nil, 1)
		}
		return out
	case len(s.Type) == 0: // an integer or a string
		return []any{int64(r.IntN(3)), r.word()}[r.IntN(2)]
	}
	switch s.Type[0] {
	case "integer":
		return int64(r.IntN(3))
	case "number":
		return []any{int64(r.IntN(2)), 0.5, 1.0}[r.IntN(3)]
	case "boolean":
		return r.IntN(2) == 0
	case "array":
		out := []any{}
		for range r.IntN(4) {
			v := r.grow(s.Items.Schema, nil, 1)
			if m, ok := v.(map[string]any); ok && m["port"] != nil && r.IntN(10) != 0 {
				m["port"] = int64(len(out))
			}
			if !slices.ContainsFunc(out, func(o any) bool { return reflect.DeepEqual(o, v) }) || r.IntN(10) == 0 {
				out = append(out, v)
			}
		}
		return out
	case "object":
		return []any{map[string]any{},
			map[string]any{r.word(): map[string]any{r.word(): int64(r.IntN(3))}, "l": []any{r.word()}},
			map[string]any{r.word(): r.word()}}[r.IntN(3)]
	}
	return r.word()
}

// On random histories of writes to objects without a Go type, the fast path gives the entries that the library gives.
func TestDynamicUpdateMatchesLibrary(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	row, own := thingRow(t)
	fast, all := 0, 0
	for seed := range uint64(30) {
		r := random{rand.New(rand.NewPCG(seed, 3))}
		var live runtime.Object
		for range 10 {
			obj, sparse := thing(""), 1
			if live != nil {
				obj, sparse = live.DeepCopyObject().(*unstructured.Unstructured), 1+r.IntN(4)
			}
			metadata := obj.Object["metadata"]
			obj.Object = runtime.DeepCopyJSON(r.grow(own, obj.Object, sparse).(map[string]any))
			obj.Object["metadata"] = metadata
			obj.SetGroupVersionKind(row.GVK)
			obj.SetLabels(map[string]string{r.word(): r.word()})
			obj.SetFinalizers([]string{"a", "b", "c"}[:r.IntN(4)])
			by := registry.Writer{Name: []string{"k", "l", "m"}[r.IntN(3)], Version: "v1",
				Subresource: []string{"", "", "status"}[r.IntN(3)], At: time.Now()}
			w, long := writeTarget{row, by.Version, by.Subresource}, obj.DeepCopyObject()
			if err := m.updateByLibrary(t.Context(), w, by, live, long); err != nil {
				t.Fatalf("the library refuses %v: %v", obj.Object, err)
			}
			all++
			if err := m.updateFast(t.Context(), w, by, live, obj); err == nil {
				fast++
				if got, want := entriesOf(t, obj), entriesOf(t, long); !slices.Equal(got, want) {
					t.Fatalf("seed %d, %v written by %s %q over %v:\ngot  %q\nwant %q", seed, withoutFields(obj),
						by.Name, by.Subresource, live, got, want)
				}
			} else if !errors.Is(err, errNeedsLibrary) {
				t.Fatal(err)
			}
			live = long
		}
	}
	if fast < all/3 {
		t.Errorf("only %d of %d writes were fast: the test shows little", fast, all)
	}
	t.Logf("%d of %d writes were fast", fast, all)
}
