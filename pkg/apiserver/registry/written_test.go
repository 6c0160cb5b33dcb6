package registry_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/storage"
)

// asked notes how new the lists must be that are asked for.
type asked struct {
	storage.Interface
	revision int64
}

func (a *asked) List(ctx context.Context, prefix string, opts storage.ListOptions) (*storage.List, error) {
	a.revision = opts.Revision
	return a.Interface.List(ctx, prefix, opts)
}

// TestListHasWrites: a client that was told that something is stored finds it in a list, also if the list is of a
// cache.
func TestListHasWrites(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	a := &asked{Interface: g.Storage}
	g.Storage = a
	expect := func(after string, items int) {
		t.Helper()
		newest, err := a.Revision(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		list, err := g.List(t.Context(), "ns", "")
		if err != nil || len(list) != items || a.revision != newest {
			t.Errorf("after %s: %d objects not older than %d, want %d not older than %d (%v)", after, len(list),
				a.revision, items, newest, err)
		}
	}
	held := configMap("b")
	held.Finalizers = []string{"example.com/hold"}
	create(t, g, configMap("a"))
	expect("create", 1)
	create(t, g, held)
	if _, err := g.Update(t.Context(), "ns", "a", "", func(o runtime.Object) (runtime.Object, error) {
		o.(metav1.Object).SetLabels(map[string]string{"x": "y"})
		return o, nil
	}, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("update", 2)
	for i, name := range []string{"b", "a"} {
		if _, _, err := g.Delete(t.Context(), "ns", name, &metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("delete "+name, 2-i)
	}
	if _, err := g.Create(t.Context(), "ns", configMap("c"),
		&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	expect("dry run", 1)
}
