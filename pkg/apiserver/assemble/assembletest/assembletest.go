// Package assembletest has what tests put a server together from without its real parts.
package assembletest

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

// Behaviours answer in the same way for everything in rows that is more than storing: c for resources, a for
// subresources.
func Behaviours(rows []resources.Row, c registry.Creater,
	a registry.Answerer) map[schema.GroupResource]assemble.Behaviour {
	all := map[schema.GroupResource]assemble.Behaviour{}
	for i := range rows {
		row := &rows[i]
		b := assemble.Behaviour{Answers: catalog.Answers{Subresources: map[string]registry.Answerer{}}}
		switch {
		case row.Observed:
			b.Lister = Nobody{}
		case row.NotStored:
			b.Creater = c
		}
		for _, sub := range row.Subresources {
			if row.NotStored || sub.Strategy == nil {
				b.Subresources[sub.Name] = a
			}
		}
		all[row.GroupResource()] = b
	}
	return all
}

// Nobody answers everything with 404.
type Nobody struct{}

func nobody(name string) error { return apierrors.NewNotFound(schema.GroupResource{}, name) }

// New implements registry.Creater.
func (Nobody) New() runtime.Object { return &metav1.PartialObjectMetadata{} }

// Create implements registry.Creater.
func (Nobody) Create(_ context.Context, _, name string, _ runtime.Object, _ *metav1.CreateOptions) (runtime.Object,
	error) {
	return nil, nobody(name)
}

// List implements registry.Lister.
func (Nobody) List(context.Context) ([]runtime.Object, error) { return nil, nil }

// Options implements registry.Connecter.
func (Nobody) Options(string, url.Values) (runtime.Object, error) { return nil, nil }

// Connect implements registry.Connecter.
func (Nobody) Connect(_ context.Context, _, name string, _ runtime.Object, _ http.ResponseWriter,
	_ *http.Request) error {
	return nobody(name)
}

// Catalog returns one of rows, for tests of what reads the catalog and serves no requests.
func Catalog(t testing.TB, rows []resources.Row) *catalog.Catalog {
	t.Helper()
	facts := &storage.FactsTable{}
	backend := memory.New(facts)
	c, err := catalog.New(t.Context(), catalog.Config{Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Add(Entries(t, backend, rows)...); err != nil {
		t.Fatal(err)
	}
	return c
}

// Entries are those of rows over a storage, with Nobody for all that is more than storing.
func Entries(t testing.TB, backend storage.Interface, rows []resources.Row) []catalog.Entry {
	t.Helper()
	behaviours := Behaviours(rows, Nobody{}, registry.Answerer{Connecter: Nobody{}})
	entries := make([]catalog.Entry, len(rows))
	for i := range rows {
		row := &rows[i]
		entries[i] = catalog.Entry{Row: row, Answers: behaviours[row.GroupResource()].Answers,
			Handle: func(*catalog.Route) (catalog.Handler, error) {
				return nil, nil
			}}
		if row.NotStored || row.Stored != nil {
			continue
		}
		var err error
		if entries[i].Store, err = registry.NewGeneric(registry.Config{Row: row, Storage: backend}); err != nil {
			t.Fatal(err)
		}
	}
	return entries
}
