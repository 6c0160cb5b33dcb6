package patch

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FuzzPatch: a patch is refused or makes a JSON document, and does so every time alike.
func FuzzPatch(f *testing.F) {
	const pod = `{"metadata":{"name":"p","labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80,"protocol":"TCP"}]}],"tolerations":[{"key":"k"}]}}`
	kinds := []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType}
	for _, p := range []string{
		`[{"op":"add","path":"/metadata/labels/x","value":"y"},{"op":"test","path":"/metadata/name","value":"p"}]`,
		`[{"op":"copy","from":"/spec","path":"/spec/x"},{"op":"move","from":"/spec/x","path":"/y"}]`,
		`[{"op":"remove","path":"/spec/containers/-1"}]`, `[{"op":"replace","path":"","value":null}]`,
		`[{"op":"test","path":""}]`, `[{}]`, `null`, `[]`, `{}`, `{"metadata":null}`,
		`{"metadata":{"labels":{"a":null}}}`,
		`{"spec":{"containers":[{"name":"c","$patch":"delete"}]}}`, `{"spec":{"containers":[{"image":"x"}]}}`,
		`{"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"name":"c","$retainKeys":["name"],"ports":[{"containerPort":81}]}]}}`,
		`{"spec":{"containers":[{"name":[]}]}}`, `{"$patch":"replace"}`, `{"spec":{"$deleteFromPrimitiveList/x":[1]}}`,
		`{"spec":{"tolerations":[{"$patch":"replace"}]}}`,
	} {
		for i := range kinds {
			f.Add([]byte(p), byte(i))
		}
	}
	f.Fuzz(func(t *testing.T, patch []byte, k byte) {
		kind := kinds[int(k)%len(kinds)]
		a, err := Read(kind, patch, corev1.Pod{})
		if err != nil {
			return
		}
		current := []byte(pod)
		out, err := a.To(t.Context(), current)
		if string(current) != pod {
			t.Fatalf("%s %q changed the object that it was applied to", kind, patch)
		}
		if err != nil {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%s %q gives %q", kind, patch, out)
		}
		again, err := a.To(t.Context(), current)
		if err != nil || !sameJSON(t, again, string(out)) {
			t.Fatalf("%s %q gives %s, and again %s, %v", kind, patch, out, again, err)
		}
	})
}
