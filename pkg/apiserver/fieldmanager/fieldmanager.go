package fieldmanager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/registry"
)

// errNeedsLibrary is returned by the fast path for a write that only the library can judge. The fast path has changed
// nothing when it returns this error.
var errNeedsLibrary = errors.New("the write needs the library")

// keepUnused is how long compiled schemas and field sets stay in memory after their last use. It outlasts the periods
// of controllers and of the kubelet's status updates, so that kinds in use are compiled once. The CPU cost of compiling
// is what matters here, not staleness: a schema never changes under its row, because a changed CustomResourceDefinition
// gets a new row.
const keepUnused = 10 * time.Minute

// Config configures a Manager.
type Config struct {
	// Scheme has the Go types of all kinds. Required.
	Scheme *runtime.Scheme
	// Log receives the errors that Update does not return. Required.
	Log *slog.Logger
}

// Manager maintains the managedFields of all kinds. It is safe for concurrent use.
//
// A process has one Manager. Requests call it on their own goroutines, before admission and again for every attempt of
// a write that storage repeats. No lock is held meanwhile: the caches lock themselves for single map operations, and
// everything else belongs to the call.
type Manager struct {
	log      *slog.Logger
	schemas  *schemas
	types    *cache[targetKey, *typeNode]
	sets     *setCache
	encoders sync.Pool // of *encoder, for their buffers
}

var _ registry.FieldManager = (*Manager)(nil)

// New returns a Manager with empty caches.
func New(cfg Config) (*Manager, error) {
	if cfg.Scheme == nil || cfg.Log == nil {
		return nil, errors.New("new field manager: a scheme and a logger are needed")
	}
	m := &Manager{
		log:     cfg.Log,
		schemas: newSchemas(cfg.Scheme, keepUnused),
		types:   newCache[targetKey, *typeNode](keepUnused),
		sets:    newSetCache(keepUnused),
	}
	m.encoders.New = func() any { return &encoder{} }
	return m, nil
}

// Update implements registry.FieldManager. It never refuses a write: managedFields record writes, so an object whose
// fields cannot be compared is stored with the entries that it had, and the error is logged.
func (m *Manager) Update(
	ctx context.Context, row *resources.Row, by registry.Writer, live, obj runtime.Object,
) error {
	access, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("managed fields: %w", err)
	}
	w := writeTarget{row, by.Version, by.Subresource}
	// The fast path changes obj only as its last step, so the library can start with the same objects.
	err = m.updateFast(ctx, w, by, live, obj)
	if errors.Is(err, errNeedsLibrary) {
		err = m.updateByLibrary(ctx, w, by, live, obj)
	}
	if err != nil {
		m.log.Error("managed fields cannot be kept",
			"kind", row.GVK, "name", access.GetName(), "namespace", access.GetNamespace(), "err", err)
		// One write that cannot be compared must not take from all appliers what they own.
		return restoreEntries(access, live)
	}
	return nil
}

// restoreEntries gives an object the entries that it had before the write; live is nil if it did not exist.
func restoreEntries(obj metav1.Object, live runtime.Object) error {
	if live == nil {
		obj.SetManagedFields(nil)
		return nil
	}
	was, err := meta.Accessor(live)
	if err != nil {
		return fmt.Errorf("managed fields: %w", err)
	}
	obj.SetManagedFields(slices.Clone(was.GetManagedFields()))
	return nil
}

// updateByLibrary lets the library compare the objects. The library needs the kind in both objects: it takes the
// version to convert from there, and stored Go objects do not have one.
func (m *Manager) updateByLibrary(
	ctx context.Context, w writeTarget, by registry.Writer, live, obj runtime.Object,
) error {
	live = orEmpty(live, w.row)
	l, err := m.library(ctx, w, live)
	if err != nil {
		return err
	}
	obj.GetObjectKind().SetGroupVersionKind(w.row.StoredGVK())
	_, err = l.Update(live, obj, by.Name)
	return err
}

// orEmpty returns live with its kind set, or an empty object of the row's stored kind if live is nil. The library has
// no notion of an object that does not exist: it compares a create with an empty object.
func orEmpty(live runtime.Object, row *resources.Row) runtime.Object {
	if live == nil {
		live = row.New()
	}
	live.GetObjectKind().SetGroupVersionKind(row.StoredGVK())
	return live
}
