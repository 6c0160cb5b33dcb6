package registry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage"
)

// Admitter is the chain of admission plug-ins: Admit runs the mutating ones, Validate the validating ones.
type Admitter interface {
	Admit(ctx context.Context, a *admission.Attributes) error
	Validate(ctx context.Context, a *admission.Attributes) error
}

// Config says what a Generic store is made of.
type Config struct {
	// Row is the resource; required. Its storage path gives the keys.
	Row *resources.Row
	// Storage keeps the objects; required.
	Storage storage.Interface
	// Admission may be nil: everything is admitted as it is.
	Admission Admitter
	// Hook keeps state beside the objects; may be nil.
	Hook Hook
	// Checker checks updates by who makes them; may be nil.
	Checker Checker
	// Fields keeps managedFields; nil: objects have none.
	Fields FieldManager
	// NoGarbageCollector leaves the propagation policy of deletions out of account: nobody would take its finalizers
	// off again.
	NoGarbageCollector bool
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Random returns the n random characters that end a generated name; nil: from crypto/rand.
	Random func(n int) string
}

// Generic is the Store of one resource, driven by its row. Beside Store's methods it offers the same operations on
// items, for handlers that answer with bytes. It has no lock and no goroutine: all but written is set when it is made,
// and each call runs on its request's goroutine.
type Generic struct {
	Config
	codec    Codec
	prefix   string
	gr       schema.GroupResource
	stored   schema.GroupVersionResource // gr's, also in a view
	admitted bool                        // this store carries out what was admitted as another request
	// written is the revision of the newest write through this store and its views.
	written *atomic.Int64
}

var _ Store = (*Generic)(nil)

// NewGeneric returns the store of cfg.Row.
func NewGeneric(cfg Config) (*Generic, error) {
	if cfg.Row == nil || cfg.Storage == nil {
		return nil, fmt.Errorf("new store: a row and a storage are needed")
	}
	if cfg.Row.NotStored || cfg.Row.StoragePath == "" {
		return nil, fmt.Errorf("new store: %s is not stored", cfg.Row.GroupResource())
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Random == nil {
		cfg.Random = RandomSuffix
	}
	return &Generic{Config: cfg, codec: NewCodec(cfg.Row), prefix: Prefix(cfg.Row), gr: cfg.Row.GroupResource(),
		stored: cfg.Row.GVR(), written: &atomic.Int64{}}, nil
}

// View returns a store of the same objects under the rules of row, which is a view of g's: its strategy, and its name
// in errors. It shares codec, storage and written with g, so a write through one is in the lists of the other.
func (g *Generic) View(row *resources.Row) *Generic {
	v := *g
	v.Row, v.gr = row, row.GroupResource()
	return &v
}

// Admitted implements Store.
func (g *Generic) Admitted() Store {
	v := *g
	v.Admission, v.admitted = nil, true
	return &v
}

// Prefix returns the storage prefix of all objects of row.
func Prefix(row *resources.Row) string { return "/registry/" + row.StoragePath + "/" }

// Codec returns the store's codec.
func (g *Generic) Codec() Codec { return g.codec }

// GroupResource is the resource as errors name it.
func (g *Generic) GroupResource() schema.GroupResource { return g.gr }

// New implements Store.
func (g *Generic) New() runtime.Object { return g.codec.New() }

// key is the object's storage key.
func (g *Generic) key(ns, name string) string {
	if g.Row.Namespaced {
		return g.prefix + ns + "/" + name
	}
	return g.prefix + name
}

// keyPrefix is the prefix of all objects of ns; "" is all namespaces.
func (g *Generic) keyPrefix(ns string) string {
	if g.Row.Namespaced && ns != "" {
		return g.prefix + ns + "/"
	}
	return g.prefix
}

// RandomSuffix draws n characters from the alphabet of Kubernetes' generated names, which has no vowels and no easily
// confused characters. Names need no secrecy, so the small bias of the modulo does no harm.
func RandomSuffix(n int) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	b := make([]byte, n)
	rand.Read(b)
	for i := range b {
		b[i] = alphabet[int(b[i])%len(alphabet)]
	}
	return string(b)
}

// attributes describes an operation to admission.
func (g *Generic) attributes(ctx context.Context, op admission.Operation, ns, name,
	subresource string) *admission.Attributes {
	c := callerFrom(ctx)
	asked := g.requested(c)
	return &admission.Attributes{
		Operation: op, Kind: g.codec.GVK(), Resource: g.stored, Subresource: subresource,
		RequestKind: asked, RequestResource: asked.GroupVersion().WithResource(g.Row.Resource),
		Namespace: ns, Name: name, User: request.UserFrom(ctx), Warn: c.Warn,
	}
}

// GetItem returns one item. notOlderThan as in storage.Interface.
func (g *Generic) GetItem(ctx context.Context, ns, name string, notOlderThan int64) (*storage.Item, error) {
	item, err := g.Storage.Get(ctx, g.key(ns, name), notOlderThan)
	if err != nil {
		return nil, g.apiError(name, err)
	}
	return item, nil
}

// ListItems returns a page of the namespace's items; ns "" is all. If the revision of a continue token has expired, the
// error carries another token with which the client can go on at the newest revision (storage.ContinueAtLatest).
func (g *Generic) ListItems(ctx context.Context, ns string, opts storage.ListOptions) (*storage.List, error) {
	list, err := g.Storage.List(ctx, g.keyPrefix(ns), opts)
	if errors.Is(err, storage.ErrExpired) && opts.Continue != "" {
		return nil, expiredContinue(opts.Continue)
	}
	if err != nil {
		return nil, g.apiError("", err)
	}
	return list, nil
}

// WatchItems watches the namespace's items; ns "" is all. Its errors are storage's.
func (g *Generic) WatchItems(ctx context.Context, ns string, opts storage.WatchOptions) (storage.Watch, error) {
	return g.Storage.Watch(ctx, g.keyPrefix(ns), opts)
}

// Get implements Store.
func (g *Generic) Get(ctx context.Context, ns, name string) (runtime.Object, error) {
	return g.getObject(ctx, ns, name, 0, g.object)
}

// GetCached implements Store. Revision 1 is older than any object, so the cache answers with what it has.
func (g *Generic) GetCached(ctx context.Context, ns, name string) (runtime.Object, error) {
	return g.getObject(ctx, ns, name, 1, g.object)
}

// object decodes an item.
func (g *Generic) object(item *storage.Item) (runtime.Object, error) { return Object(g.codec, item) }

func (g *Generic) getObject(ctx context.Context, ns, name string, notOlderThan int64,
	object func(*storage.Item) (runtime.Object, error)) (runtime.Object, error) {
	item, err := g.GetItem(ctx, ns, name, notOlderThan)
	if err != nil {
		return nil, err
	}
	return object(item)
}

// wrote remembers a write, so that List has it. Requests call it at the same time and in any order of their revisions,
// so it only ever raises the number.
func (g *Generic) wrote(item *storage.Item) {
	for old := g.written.Load(); old < item.Revision; old = g.written.Load() {
		if g.written.CompareAndSwap(old, item.Revision) {
			return
		}
	}
}

// strategyOf returns what applies to a write of subresource: nil for one without a strategy of its own.
func strategyOf(row *resources.Row, subresource string) *resources.Strategy {
	if subresource == "" {
		return &row.Strategy
	}
	for i := range row.Subresources {
		if row.Subresources[i].Name == subresource {
			return row.Subresources[i].Strategy
		}
	}
	return nil
}

// setVersion puts the item's revision into obj.
func setVersion(obj runtime.Object, item *storage.Item) error {
	access, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("set resourceVersion: %w", err)
	}
	setRevision(access, item.Revision)
	return nil
}

// setRevision sets the resourceVersion, which revision 0 (a dry run's) leaves empty.
func setRevision(access metav1.Object, revision int64) {
	version := ""
	if revision != 0 {
		version = strconv.FormatInt(revision, 10)
	}
	access.SetResourceVersion(version)
}

// isDryRun reports whether the client asked to store nothing.
func isDryRun(dryRun []string) bool { return len(dryRun) > 0 && dryRun[0] == metav1.DryRunAll }

// Decode makes an object of a stored value, without resourceVersion.
func (g *Generic) Decode(value []byte) (runtime.Object, error) { return g.codec.Decode(value, 0) }
