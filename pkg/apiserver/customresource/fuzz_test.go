package customresource

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// says is a webhook that answers every call in the same way.
type says string

func (s says) Call(context.Context, []byte, time.Duration, int64) ([]byte, error) {
	return []byte(s), nil
}

// asking returns a converter whose webhook answers so.
func asking(answer string) converter {
	crd := &v1.CustomResourceDefinition{}
	crd.Spec.Group, crd.Spec.Versions = "ex.io", []v1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v2"}}
	crd.Spec.Conversion = &v1.CustomResourceConversion{Strategy: v1.WebhookConverter,
		Webhook: &v1.WebhookConversion{ConversionReviewVersions: []string{"v1"}}}
	return converter{crd: crd, hook: says(answer), uid: func() string {
		return "u"
	}, observe: func(time.Duration, error) {}, now: time.Now}
}

func stored(t testing.TB) []runtime.Object {
	t.Helper()
	var out []runtime.Object
	for _, name := range []string{"a", "b"} {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(
			[]byte(`{"apiVersion":"ex.io/v1","kind":"W","metadata":{"name":"` + name +
				`","namespace":"ns","uid":"1","resourceVersion":"7","finalizers":["ex.io/f"],"labels":{"l":"1"}},"spec":{"x":1}}`)); err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

// FuzzConversion: whatever a webhook answers, either the conversion fails, or every object is there, in its place, of
// the version that was asked for, with the metadata that a webhook may not change. Nothing panics.
func FuzzConversion(f *testing.F) {
	object := func(name, more string) string {
		return `{"apiVersion":"ex.io/v2","kind":"W","metadata":{"name":"` + name + `","namespace":"ns","uid":"1"` +
			more + `},"spec":{"y":1}}`
	}
	answer := func(objects string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"u","result":{"status":"Success"},"convertedObjects":[` + objects + `]}}`
	}
	for _, objects := range []string{
		object("a", "") + "," + object("b", ""), object("b", "") + "," + object("a", ""), object("a", ""),
		object("a", `,"labels":{"l":"2"},"finalizers":[]`) + "," + object("b", `,"labels":null`),
		object("a", `,"labels":{"l":2}`) + "," + object("b", ""), object("a", `,"labels":[]`) + "," + object("b", ""),
		`null,null`, `{},{}`, `[],1`,
		object("a", `,"resourceVersion":"8"`) + "," + object("b", `,"annotations":{"a":"b"}`),
		`{"apiVersion":"ex.io/v2","kind":"W","metadata":null},` + object("b", ""),
		`{"apiVersion":"ex.io/v2","kind":"WList","items":[]},` + object("b", ""),
	} {
		f.Add(answer(objects))
	}
	f.Add(`{}`)
	f.Add(`null`)
	f.Add(strings.Repeat("[", 2000))
	to := schema.GroupVersion{Group: "ex.io", Version: "v2"}
	f.Fuzz(func(t *testing.T, answer string) {
		objs, untouched := stored(t), stored(t)
		out, err := asking(answer).convert(t.Context(), to, objs)
		if err != nil {
			return
		}
		if len(out) != len(objs) {
			t.Fatalf("%d objects of %d", len(out), len(objs))
		}
		for i := range out {
			is, was := out[i].(*unstructured.Unstructured), untouched[i].(*unstructured.Unstructured)
			if is.GetAPIVersion() != to.String() || is.GetKind() != was.GetKind() {
				t.Fatalf("object %d is of %s", i, is.GroupVersionKind())
			}
			got, want := is.Object["metadata"].(map[string]any),
				runtime.DeepCopyJSON(was.Object["metadata"].(map[string]any))
			for _, free := range []string{"labels", "annotations"} {
				delete(want, free)
			}
			for key, value := range want {
				if !reflect.DeepEqual(got[key], value) {
					t.Fatalf("object %d: metadata.%s is %v", i, key, got[key])
				}
			}
			if _, err := json.Marshal(is.Object); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// An answer that is small as text and huge when it is decoded is refused before that.
func TestBombInAnswer(t *testing.T) {
	t.Parallel()
	for name, bomb := range map[string]string{
		"values": `{"x":[` + strings.Repeat("{},", 1<<20) + `{}]}`,
		"depth":  strings.Repeat(`{"x":`, 5000) + "1" + strings.Repeat("}", 5000),
	} {
		_, err := asking(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"u","result":{"status":"Success"},"convertedObjects":[`+bomb+`]}}`).convert(t.Context(),
			schema.GroupVersion{Group: "ex.io", Version: "v2"}, stored(t)[:1])
		if err == nil || !strings.Contains(err.Error(), "conversion webhook for ex.io/v1, Kind=W failed: the answer ") {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}
