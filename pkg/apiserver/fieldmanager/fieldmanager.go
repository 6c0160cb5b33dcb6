// Package fieldmanager keeps metadata.managedFields: which manager has set which field of an object, with which operation.
//
// Upstream's own library (apimachinery's managedfields on structured-merge-diff) does it for every request that is rare: it
// compares objects through an OpenAPI schema and reads and writes all field sets. What nearly every write of a cluster is, an
// update in the stored version by a client that leaves managedFields alone, is done in short: the Go values, or the values of decoded JSON, are compared
// directly, what a new object has is written without making a set, field sets are read once for all objects that have the same, and those that do not change are not rewritten.
// An apply that takes nothing from anybody is done so, too. Both give the same objects and entries, which tests with random histories
// check.
package fieldmanager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
	"weak"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/registry"
)

// Config is what field managers are made of.
type Config struct {
	// Scheme has the Go types of all kinds. Required.
	Scheme *runtime.Scheme
	// Keep is how long what was made of a schema stays in memory after its last use; 0: ten minutes.
	Keep time.Duration
	Log  *slog.Logger
}

// Manager keeps the managedFields of all kinds. It is safe for concurrent use.
type Manager struct {
	log       *slog.Logger
	schemas   *schemas
	comparers *kept[weakWrites, *comparer]
	sets      *sets
	fresh     sync.Pool // of *fresh
}

var _ registry.FieldManager = (*Manager)(nil)

// writes are those of a kind in one version through one subresource.
type writes struct {
	row                  *resources.Row
	version, subresource string
}

// weakWrites are writes as what is kept for them knows them: it does not keep a row in memory that is not served any more.
type weakWrites struct {
	row                  weak.Pointer[resources.Row]
	version, subresource string
}

// New returns a Manager that has made nothing yet.
func New(cfg Config) (*Manager, error) {
	if cfg.Scheme == nil || cfg.Log == nil {
		return nil, errors.New("new field manager: a scheme and a logger are needed")
	}
	if cfg.Keep == 0 {
		cfg.Keep = 10 * time.Minute
	}
	m := &Manager{log: cfg.Log, schemas: newSchemas(cfg.Scheme, cfg.Keep), sets: newSets(cfg.Keep)}
	m.fresh.New = func() any { return &fresh{} }
	m.comparers = newKept[weakWrites, *comparer](cfg.Keep)
	return m, nil
}

// Update implements registry.FieldManager.
func (m *Manager) Update(ctx context.Context, row *resources.Row, by registry.Writer, live, obj runtime.Object) error {
	access, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("managed fields: %w", err)
	}
	w := writes{row, by.Version, by.Subresource}
	err = m.short(ctx, w, by, live, obj)
	if errors.Is(err, errUnusual) {
		err = m.long(ctx, w, by, live, obj)
	}
	if err != nil {
		// Managed fields tell of writes; they are no reason to refuse one.
		m.log.Error("managed fields cannot be kept", "kind", row.GVK, "name", access.GetName(), "namespace", access.GetNamespace(), "err", err)
		access.SetManagedFields(nil)
	}
	return nil
}

// long lets the library compare the objects.
func (m *Manager) long(ctx context.Context, w writes, by registry.Writer, live, obj runtime.Object) error {
	live = orEmpty(live, w.row)
	l, err := m.library(ctx, w, live)
	if err != nil {
		return err
	}
	obj.GetObjectKind().SetGroupVersionKind(w.row.StoredGVK())
	_, err = l.Update(live, obj, by.Name)
	return err
}

// orEmpty returns an empty object of the row's stored kind where there is none.
func orEmpty(live runtime.Object, row *resources.Row) runtime.Object {
	if live == nil {
		live = row.New()
	}
	live.GetObjectKind().SetGroupVersionKind(row.StoredGVK())
	return live
}
