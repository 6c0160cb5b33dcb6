package patch

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestApply(t *testing.T) {
	t.Parallel()
	pod := `{"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}]},"metadata":{"labels":{"x":"y"}}}`
	for _, c := range []struct {
		name  string
		kind  types.PatchType
		patch string
		want  string
		err   error
	}{
		{"json replace", types.JSONPatchType, `[{"op":"replace","path":"/spec/containers/0/image","value":"2"}]`, strings.Replace(pod, `"image":"1"`, `"image":"2"`, 1), nil},
		{"json test fails", types.JSONPatchType, `[{"op":"test","path":"/metadata/labels/x","value":"z"}]`, "", ErrNotApplicable},
		{"json no path", types.JSONPatchType, `[{"op":"remove","path":"/a/b"}]`, "", ErrNotApplicable},
		{"json too many", types.JSONPatchType, `[` + strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/spec"},`, 10001), ",") + `]`, "", ErrTooLarge},
		{"json copies", types.JSONPatchType, `[` + strings.TrimSuffix(strings.Repeat(`{"op":"copy","from":"/spec","path":"/spec/a"},`, 9999), ",") + `]`, "", ErrNotApplicable},
		{"merge null removes", types.MergePatchType, `{"metadata":null}`, `{"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}]}}`, nil},
		{"merge replaces lists", types.MergePatchType, `{"spec":{"containers":[]}}`, `{"spec":{"containers":[]},"metadata":{"labels":{"x":"y"}}}`, nil},
		{"strategic merges by name", types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"b","image":"2"}]}}`, `{"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"2"}]},"metadata":{"labels":{"x":"y"}}}`, nil},
		{"strategic deletes by name", types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"b","$patch":"delete"}]}}`, `{"spec":{"containers":[{"name":"a","image":"1"}]},"metadata":{"labels":{"x":"y"}}}`, nil},
	} {
		f, err := For(c.kind, &corev1.Pod{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := f([]byte(pod), []byte(c.patch))
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
		if c.err == nil && !sameJSON(t, got, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	for _, kind := range []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType} {
		f, err := For(kind, &corev1.Pod{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{`{bad`, ``, `5`} {
			if _, err := f([]byte(`{}`), []byte(p)); err == nil || errors.Is(err, ErrNotApplicable) {
				t.Errorf("%s %q: %v, want a decoding error", kind, p, err)
			}
		}
	}
	if _, err := For(types.ApplyPatchType, &corev1.Pod{}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("apply: %v", err)
	}
}

func sameJSON(t *testing.T, a []byte, b string) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		t.Fatalf("not JSON: %s", a)
	}
	return reflect.DeepEqual(x, y)
}
