// Package registrytest has the generic stores of Kubernetes' resources over memory, filled with objects, for the tests
// of behaviours that use them.
package registrytest

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

// Stores finds the stores that it consists of by what they keep.
type Stores []*registry.Generic

var _ registry.Stores = Stores(nil)

// Store returns the store of gr, nil if there is none.
func (s Stores) Store(gr schema.GroupResource) registry.Store {
	for _, g := range s {
		if g.GroupResource() == gr {
			return g
		}
	}
	return nil
}

// Of returns the store of a resource ("deployments.apps") without admission, with objs as if they had been stored
// before: defaulted, with their status and deletionTimestamp. What a write by a strategy changes must be valid then.
// Those without a UID get "uid-NAME"; the resourceVersion is the storage's.
func Of(t testing.TB, resource string, objs ...runtime.Object) *registry.Generic {
	t.Helper()
	all := rows.All()
	i := slices.IndexFunc(all, func(r resources.Row) bool {
		return r.GroupResource() == schema.ParseGroupResource(resource)
	})
	if i < 0 {
		t.Fatalf("no row for %s", resource)
	}
	row := &all[i]
	facts := &storage.FactsTable{}
	g, err := registry.NewGeneric(registry.Config{Row: row, Storage: memory.New(facts)})
	if err != nil {
		t.Fatal(err)
	}
	facts.Register(registry.Prefix(row), g.Codec().FactsOf)
	for _, obj := range objs {
		seed(t, g, obj.DeepCopyObject())
	}
	return g
}

// seed stores obj, defaulted.
func seed(t testing.TB, g *registry.Generic, obj runtime.Object) {
	t.Helper()
	m, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	if m.GetUID() == "" {
		m.SetUID(types.UID("uid-" + m.GetName()))
	}
	if def := g.Row.Strategy.Default; def != nil {
		def(obj)
	}
	key := registry.Prefix(g.Row)
	if g.Row.Namespaced {
		key += m.GetNamespace() + "/"
	}
	draft, err := g.Codec().Draft(obj)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Storage.Create(t.Context(), key+m.GetName(), draft); err != nil {
		t.Fatal(err)
	}
}
