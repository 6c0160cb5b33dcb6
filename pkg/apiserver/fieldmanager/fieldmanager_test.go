package fieldmanager

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/registry"
)

func thing(content string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(
		fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t","uid":"u"}%s}`,
			content)); err != nil {
		panic(err)
	}
	return u
}

// TestWithoutSchema: objects without a Go type or schema have managedFields, and can be applied. Lists are atomic.
func TestWithoutSchema(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	row := &resources.Row{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"},
		Resource: "things",
		New:      func() runtime.Object { return &unstructured.Unstructured{Object: map[string]any{}} }}
	by := registry.Writer{Name: "k", Version: "v1", At: time.Now()}
	obj := thing(`,"spec":{"a":1,"list":[1,2]}`)
	if err := m.Update(t.Context(), row, by, nil, obj); err != nil {
		t.Fatal(err)
	}
	if e := obj.GetManagedFields(); len(e) != 1 ||
		string(raw(e[0].FieldsV1)) != `{"f:spec":{".":{},"f:a":{},"f:list":{}}}` {
		t.Errorf("%+v", e)
	}
	applied := registry.Writer{Name: "l", Version: "v1", At: time.Now()}
	if _, err := m.Apply(t.Context(), row, applied, obj, thing(`,"spec":{"a":2}`),
		false); err == nil || err.Error() !=
		`Apply failed with 1 conflict: conflict with "k" using example.com/v1: .spec.a` {
		t.Errorf("a conflict: %v", err)
	}
	out, err := m.Apply(t.Context(), row, applied, obj, thing(`,"spec":{"b":{"c":true}}`), false)
	if err != nil {
		t.Fatal(err)
	}
	if c, _, _ := unstructured.NestedBool(out.(*unstructured.Unstructured).Object, "spec", "b", "c"); !c {
		t.Errorf("%v", out)
	}
}

// TestTwoEntriesOfOne: if one manager has two entries, as after an apply of a Scale, the next write keeps the last.
func TestTwoEntriesOfOne(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	row := &resources.Row{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"},
		Resource: "things",
		New:      func() runtime.Object { return &unstructured.Unstructured{Object: map[string]any{}} }}
	live := thing(`,"spec":{"a":1,"b":1}`)
	entry := func(set string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: "k", Operation: metav1.ManagedFieldsOperationUpdate,
			APIVersion: "example.com/v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(set)}}
	}
	live.SetManagedFields([]metav1.ManagedFieldsEntry{entry(`{"f:spec":{"f:a":{}}}`), entry(`{"f:spec":{"f:b":{}}}`)})
	obj := live.DeepCopy()
	if err := unstructured.SetNestedField(obj.Object, int64(2), "spec", "c"); err != nil {
		t.Fatal(err)
	}
	if err := m.Update(t.Context(), row, registry.Writer{Name: "l", Version: "v1", At: time.Now()}, live,
		obj); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range obj.GetManagedFields() {
		got[e.Manager] += string(raw(e.FieldsV1))
	}
	if want := map[string]string{"k": `{"f:spec":{"f:b":{}}}`, "l": `{"f:spec":{"f:c":{}}}`}; !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestDroppedWhenUnused: the caches drop compiled types and field sets after a time without use.
func TestDroppedWhenUnused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := 0
		k := newCache[int, int](time.Minute)
		for range 10 {
			if v, err := k.get(3, func() (int, error) { made++; return 3, nil }); v != 3 || err != nil {
				t.Fatal(v, err)
			}
			time.Sleep(50 * time.Second) // of the bubble's clock
		}
		if made != 1 {
			t.Errorf("made %d times while in use", made)
		}
		s := newSetCache(time.Minute)
		s.add([]byte(`{"f:a":{}}`), fieldpath.NewSet())
		time.Sleep(3 * time.Minute)
		k.mu.Lock()
		defer k.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(k.entries) != 0 || len(s.young)+len(s.old) != 0 || k.timer || s.timer {
			t.Errorf("kept %d values and %d sets, timers %v %v", len(k.entries), len(s.young)+len(s.old), k.timer,
				s.timer)
		}
	})
}

// TestSetsAreBounded: the cache keeps few of many different sets, and keeps those in use.
func TestSetsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSetCache(time.Hour)
	used := fieldpath.NewSet()
	s.add([]byte("used"), used)
	for i := range 10 * maxSets {
		s.add(fmt.Append(nil, i), fieldpath.NewSet())
		if s.cached([]byte("used")) != used {
			t.Fatalf("lost after %d", i)
		}
	}
	if n := len(s.young) + len(s.old); n > 2*maxSets {
		t.Errorf("%d sets", n)
	}
}

// TestManyManagers: a write converts its objects once for each version, however many managers use the version.
func TestManyManagers(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	conversions := 0
	convert := func(version string) func(context.Context, runtime.Object) (runtime.Object, error) {
		return func(_ context.Context, obj runtime.Object) (runtime.Object, error) {
			conversions++
			obj.(*unstructured.Unstructured).SetAPIVersion("example.com/" + version)
			return obj, nil
		}
	}
	empty := func() runtime.Object { return &unstructured.Unstructured{Object: map[string]any{}} }
	row := &resources.Row{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"},
		Resource: "things", New: empty,
		Versions: []resources.Version{{Name: "v2", New: empty, ToHub: convert("v1"), FromHub: convert("v2")}}}
	live := thing(`,"spec":{"a":1}`)
	var entries []metav1.ManagedFieldsEntry
	for i := range 100 {
		e := metav1.ManagedFieldsEntry{Manager: fmt.Sprint("m", i), Operation: metav1.ManagedFieldsOperationApply,
			APIVersion: "example.com/v2", FieldsType: fieldsV1, FieldsV1: &metav1.FieldsV1{}}
		e.FieldsV1.SetRawBytes([]byte(`{"f:spec":{"f:a":{}}}`))
		entries = append(entries, e)
	}
	live.SetManagedFields(entries)
	obj := live.DeepCopy()
	obj.Object["spec"] = map[string]any{"a": int64(2)}
	if err := m.Update(t.Context(), row, registry.Writer{Name: "k", Version: "v1", At: time.Now()}, live,
		obj); err != nil {
		t.Fatal(err)
	}
	if e := obj.GetManagedFields(); len(e) != 1 || e[0].Manager != "k" {
		t.Errorf("%+v", e)
	}
	if conversions != 2 { // of the object as it was, and as it is
		t.Errorf("%d conversions", conversions)
	}
}
