package patch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
		{"json replace", types.JSONPatchType, `[{"op":"replace","path":"/spec/containers/0/image","value":"2"}]`,
			strings.Replace(pod, `"image":"1"`, `"image":"2"`, 1), nil},
		{"json test fails", types.JSONPatchType, `[{"op":"test","path":"/metadata/labels/x","value":"z"}]`, "",
			ErrNotApplicable},
		{"json replace sets what is not there", types.JSONPatchType,
			`[{"op":"replace","path":"/metadata/labels/z","value":"1"}]`,
			strings.Replace(pod, `"x":"y"`, `"x":"y","z":"1"`, 1), nil},
		{"json unknown operation", types.JSONPatchType, `[{"op":"foo","path":"/spec"}]`, "", ErrNotApplicable},
		{"strategic item without its key", types.StrategicMergePatchType, `{"spec":{"containers":[{"image":"2"}]}}`, "",
			ErrDirective},
		{"strategic item whose key is a list", types.StrategicMergePatchType, `{"spec":{"containers":[{"name":[]}]}}`,
			"", ErrDirective},
		{"json tests for nothing", types.JSONPatchType, `[{"op":"test","path":""}]`, "", ErrNotApplicable},
		{"strategic unknown directive", types.StrategicMergePatchType, `{"metadata":{"labels":{"$patch":"foo"}}}`, "",
			ErrDirective},
		{"json no path", types.JSONPatchType, `[{"op":"remove","path":"/a/b"}]`, "", ErrNotApplicable},
		{"json too many", types.JSONPatchType,
			`[` + strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/spec"},`, 10001), ",") + `]`, "",
			ErrTooLarge},
		{"json copies", types.JSONPatchType,
			`[` + strings.TrimSuffix(strings.Repeat(`{"op":"copy","from":"/spec","path":"/spec/a"},`, 9999), ",") + `]`,
			"", ErrNotApplicable},
		{"merge null removes", types.MergePatchType, `{"metadata":null}`,
			`{"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}]}}`, nil},
		{"merge replaces lists", types.MergePatchType, `{"spec":{"containers":[]}}`,
			`{"spec":{"containers":[]},"metadata":{"labels":{"x":"y"}}}`, nil},
		{"strategic merges by name", types.StrategicMergePatchType,
			`{"spec":{"containers":[{"name":"b","image":"2"}]}}`,
			`{"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"2"}]},"metadata":{"labels":{"x":"y"}}}`, nil},
		{"strategic deletes by name", types.StrategicMergePatchType,
			`{"spec":{"containers":[{"name":"b","$patch":"delete"}]}}`,
			`{"spec":{"containers":[{"name":"a","image":"1"}]},"metadata":{"labels":{"x":"y"}}}`, nil},
	} {
		got, err := apply(t.Context(), c.kind, pod, c.patch)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
		if c.err == nil && !sameJSON(t, got, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func apply(ctx context.Context, kind types.PatchType, current, patch string) ([]byte, error) {
	a, err := Read(kind, []byte(patch), &corev1.Pod{})
	if err != nil {
		return nil, err
	}
	return a.To(ctx, []byte(current))
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  types.PatchType
		patch string
		want  string
	}{
		{types.MergePatchType, `{"data":{"a":"1","a":"2"}}`, `[duplicate field "data.a"]`},
		{types.StrategicMergePatchType, `{"data":{"a":"1","a":"2"},"x":1}`, `[duplicate field "data.a"]`},
		{types.JSONPatchType, `[{"op":"test"},{"op":"add","op":"add","path":"/a","value":1}]`,
			`[json patch duplicate field "[1].op"]`},
		{types.JSONPatchType, `[{"op":"add","path":"/a","value":1,"more":2}]`, `[]`},
	} {
		a, err := Read(c.kind, []byte(c.patch), &corev1.Pod{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(a.Duplicates); got != c.want {
			t.Errorf("%s: %s, want %s", c.patch, got, c.want)
		}
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	for _, kind := range []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType} {
		for _, p := range []string{`{bad`, ``, `5`} {
			if _, err := apply(t.Context(), kind, `{}`, p); err == nil || errors.Is(err, ErrNotApplicable) {
				t.Errorf("%s %q: %v, want a decoding error", kind, p, err)
			}
		}
	}
	if _, err := apply(t.Context(), types.MergePatchType, `{}`, `null`); err == nil {
		t.Error("a merge patch of null was taken")
	}
	if _, err := apply(t.Context(), types.ApplyPatchType, `{}`, `{}`); !errors.Is(err, errUnsupported) {
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

// TestEndOfWork: a patch whose client has left is not worked on, and one that grows the document without end is
// refused.
func TestEndOfWork(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := apply(gone, types.JSONPatchType, `{}`,
		`[{"op":"add","path":"/a","value":1}]`); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
	doubling := `[{"op":"add","path":"/a","value":"` + strings.Repeat("x", 20_000) + `"}`
	for i := range 400 {
		doubling += fmt.Sprintf(`,{"op":"copy","from":"/a","path":"/b%d"}`, i)
	}
	if _, err := apply(t.Context(), types.JSONPatchType, `{}`, doubling+"]"); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("%v, want %v", err, ErrNotApplicable)
	}
	if _, err := apply(t.Context(), types.StrategicMergePatchType, `{}`,
		`{"a":[`+strings.Repeat("1,", 5000)+`1]}`); !errors.Is(err, ErrLongList) {
		t.Errorf("%v, want %v", err, ErrLongList)
	}
}
