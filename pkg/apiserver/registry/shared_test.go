package registry_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/registry"
)

// TestShared: readers of a shared store have one object until it is written, others one each.
func TestShared(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	created := create(t, g, configMap("a"))
	shared := g.Shared()
	read := func() runtime.Object {
		t.Helper()
		obj, err := shared.Get(t.Context(), "ns", "a")
		if err != nil {
			t.Fatal(err)
		}
		cached, err := shared.GetCached(t.Context(), "ns", "a")
		if err != nil || cached != obj {
			t.Errorf("another object is at hand: %v", err)
		}
		list, err := shared.List(t.Context(), "ns", "")
		if err != nil || len(list) != 1 || list[0] != obj {
			t.Errorf("another object is in the list: %v", err)
		}
		own, err := g.Get(t.Context(), "ns", "a")
		if err != nil || own == obj {
			t.Errorf("the object of who may change it is shared: %v", err)
		}
		return obj
	}
	first := read()
	if got := first.(*corev1.ConfigMap); got.ResourceVersion != created.ResourceVersion || got.Data["a"] != "b" {
		t.Errorf("read %+v", got)
	}
	if read() != first {
		t.Error("a second reader got another object")
	}
	changed, err := g.Update(t.Context(), "ns", "a", "", func(obj runtime.Object) (runtime.Object, error) {
		obj.(*corev1.ConfigMap).Data["a"] = "c"
		return obj, nil
	}, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := read().(*corev1.ConfigMap); got.Data["a"] != "c" ||
		got.ResourceVersion != changed.(*corev1.ConfigMap).ResourceVersion {
		t.Errorf("read %+v after it was changed", got)
	}
	if _, err := shared.GetCached(t.Context(), "ns", "b"); err == nil {
		t.Error("found what is not there")
	}
}

// TestEach: objects come one after the other, and none is decoded that nobody waits for any more.
func TestEach(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	for _, name := range []string{"a", "b", "c"} {
		create(t, g, configMap(name))
	}
	for name, reader := range map[string]registry.Reader{"own": g, "shared": g.Shared()} {
		var names []string
		for obj, err := range reader.Each(t.Context(), "ns", "") {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, obj.(*corev1.ConfigMap).Name)
		}
		if !slices.Equal(names, []string{"a", "b", "c"}) {
			t.Errorf("%s: %v", name, names)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var got []error
		for obj, err := range reader.Each(ctx, "ns", "") {
			if cancel(); (obj == nil) != (err != nil) {
				t.Errorf("%s: %v with %v", name, obj, err)
			}
			got = append(got, err)
		}
		cancel() // if there was none
		if len(got) != 2 || got[0] != nil || !errors.Is(got[1], context.Canceled) {
			t.Errorf("%s: a request that ends after the first object gets %v", name, got)
		}
		for obj, err := range reader.Each(t.Context(), "ns", "!") {
			if obj != nil || err == nil {
				t.Errorf("%s: a broken selector finds %v", name, obj)
			}
		}
	}
}
