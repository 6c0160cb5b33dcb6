// Package watchcache puts a cache before a storage: reads and watches are answered from memory, as linearizably as by
// the storage itself.
//
// One watch of everything, the hub, brings all changes in order, so its revision is the revision of the whole. Each
// resource that is used gets a copy-on-write ordered tree of its items and a window of its latest changes. A consistent
// read asks the storage for its newest revision (one cheap request shared by all who ask at the same time), waits until
// the hub has come that far, and answers from the tree. A watcher is a cursor into the window: it has no goroutine and
// no buffer. A write goes to the storage; its item is shared with the change that comes back, so nothing is decoded
// twice.
package watchcache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bonsai/pkg/apiserver/storage"
)

// Backend is the storage behind the cache.
type Backend interface {
	storage.Interface
	// UpdateFrom and DeleteFrom are Update and Delete that show the function the item hint first (nil: the newest).
	UpdateFrom(ctx context.Context, hint *storage.Item, key string,
		change func(*storage.Item) (storage.Draft, error)) (*storage.Item, error)
	DeleteFrom(ctx context.Context, hint *storage.Item, key string, check func(*storage.Item) error) (*storage.Item,
		error)
	// Fingerprint sums up the keys under prefix as of revision. ErrExpired.
	Fingerprint(ctx context.Context, prefix string, revision int64) (storage.Fingerprint, error)
	// Compacted is the oldest revision that can still be read, as far as is known without asking; 0: all can.
	Compacted() int64
}

// Config says what to cache and how.
type Config struct {
	// Facts knows the resources, by the prefixes of their keys. What is not registered is not cached. Required; shared
	// with the backend.
	Facts *storage.FactsTable
	// Root is the prefix of all keys. Default: "/registry/".
	Root string
	// CheckInterval is the time between comparisons of each cached resource with the backend. Default: 5 minutes.
	CheckInterval time.Duration
	// WindowBytes bounds, per resource, the memory that past changes hold besides the present items. Default: 24 MiB.
	WindowBytes int
	// Open opens an item that the backend gave sealed, which may take a while; nil if the backend gives none.
	Open func(ctx context.Context, item *storage.Item) (*storage.Item, error)
	// Log tells of lost watches and failed comparisons. Default: discard.
	Log *slog.Logger
}

// Cache is a storage.Interface that decorates a Backend. Make it with New.
type Cache struct {
	backend Backend
	cfg     Config
	index   *readIndex
	hub     *hub

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu        sync.Mutex                           // serializes changes of resources
	resources atomic.Pointer[map[string]*resource] // by prefix; the map is never changed, only replaced
}

var _ storage.Interface = (*Cache)(nil)

// New starts a cache. It reads the backend's revision, and lists a resource when it is first used. The cache lives
// until Close or the end of ctx.
func New(ctx context.Context, backend Backend, cfg Config) (*Cache, error) {
	if cfg.Facts == nil {
		return nil, errors.New("watchcache: Config.Facts is required")
	}
	if cfg.Root == "" {
		cfg.Root = "/registry/"
	}
	if cfg.CheckInterval == 0 {
		cfg.CheckInterval = 5 * time.Minute
	}
	if cfg.WindowBytes == 0 {
		cfg.WindowBytes = 24 << 20
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	revision, err := backend.Revision(ctx)
	if err != nil {
		return nil, fmt.Errorf("watchcache: read the storage's revision: %w", err)
	}
	c := &Cache{backend: backend, cfg: cfg, hub: &hub{}}
	c.resources.Store(&map[string]*resource{})
	c.hub.revision.Store(revision)
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.index = &readIndex{read: c.readRevision, run: c.tasks.Go}
	c.tasks.Go(c.follow)
	c.tasks.Go(c.check)
	c.tasks.Go(c.sweep)
	return c, nil
}

// Close stops the cache and waits for its goroutines. Watches end with an error.
func (c *Cache) Close() error {
	c.cancel()
	c.tasks.Wait()
	c.drop("", "the cache is closed")
	return nil
}

// Forget drops what is cached of the resource with this prefix, because its facts are read differently now or it is not
// served any more. Its watches end with ErrExpired.
func (c *Cache) Forget(prefix string) { c.drop(prefix, "the resource has changed") }

// drop forgets the resource with this prefix, or with "" all.
func (c *Cache) drop(prefix, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := *c.resources.Load()
	kept := maps.Clone(all)
	maps.DeleteFunc(kept, func(p string, _ *resource) bool { return p == prefix || prefix == "" })
	c.resources.Store(&kept) // first: who meets a dead resource starts over, and must not find it again
	for p, r := range all {
		if kept[p] == nil {
			r.kill(why)
		}
	}
}

// cached returns the resource of key or prefix if it is cached, else nil. It may still be loading. It takes no lock:
// each read, write and change comes by here, and the map is replaced as a whole.
func (c *Cache) cached(key string) *resource {
	all := *c.resources.Load()
	for n := strings.LastIndexByte(key, '/') + 1; n > 0; n = strings.LastIndexByte(key[:n-1], '/') + 1 {
		if r := all[key[:n]]; r != nil {
			return r
		}
	}
	return nil
}

// resource returns the loaded cache of the resource that key (or prefix) belongs to, loading it if need be; nil if the
// key belongs to no registered resource.
func (c *Cache) resource(ctx context.Context, key string) (*resource, error) {
	r := c.cached(key)
	if r == nil {
		prefix, _ := c.cfg.Facts.Resource(key)
		if prefix == "" {
			return nil, nil
		}
		if r = c.start(prefix); r == nil {
			return nil, nil
		}
	}
	select {
	case <-r.ready:
		return r, r.failed
	default:
	}
	select {
	case <-r.ready:
		return r, r.failed
	case <-ctx.Done():
		return nil, storage.At("watchcache: wait for the cache of", r.prefix, ctx.Err())
	}
}

// start begins to load a resource: from now on the hub keeps its changes, so a list that begins after this misses none.
// It returns nil for one that is not registered any more: Forget comes after that and takes the same lock, so whatever
// is begun before it is dropped by it, and nothing can be begun after it that nobody would ever drop.
func (c *Cache) start(prefix string) *resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := *c.resources.Load()
	if r := all[prefix]; r != nil {
		return r
	}
	if registered, _ := c.cfg.Facts.Resource(prefix); registered != prefix {
		return nil
	}
	r := newResource(prefix, c.cfg)
	next := maps.Clone(all)
	next[prefix] = r
	c.resources.Store(&next)
	c.tasks.Go(func() { c.load(r) })
	return r
}

// load lists the resource from the backend. If that fails, those who wait get the error and the next user tries again.
// It has the cache's context, not a user's: others wait for the same load.
func (c *Cache) load(r *resource) {
	l, err := c.backend.List(c.ctx, r.prefix, storage.ListOptions{Match: storage.Latest, Raw: true})
	if err == nil {
		sealed := 0
		for i, item := range l.Items {
			l.Items[i] = r.decode(item)
			if item.Sealed() {
				sealed++
			}
		}
		if sealed > 0 {
			c.cfg.Log.Error("objects in the storage cannot be opened", "prefix", r.prefix, "objects", sealed)
		}
		if r.loaded(l) {
			c.settle(r)
		}
		return
	}
	r.failed = storage.At("watchcache: load", r.prefix, err)
	// Before ready is closed: who starts over because of the error must not find this resource again.
	c.drop(r.prefix, "it could not be loaded")
	close(r.ready)
}

// readRevision asks the backend for its newest revision, for the read index. One that is older than what the hub has
// delivered means that the storage has lost history (restored from a backup): everything cached is void.
func (c *Cache) readRevision() (int64, error) {
	known := c.hub.revision.Load()
	revision, err := c.backend.Revision(c.ctx)
	if err == nil && revision < known {
		c.hub.restart()
		return 0, fmt.Errorf("watchcache: the storage went back from revision %d to %d", known, revision)
	}
	return revision, err
}

// fresh waits until r has all that the storage had acknowledged when it was called.
func (c *Cache) fresh(ctx context.Context, r *resource) error {
	revision, err := c.index.get(ctx)
	if err != nil {
		return err
	}
	return c.reach(ctx, r, revision)
}

// reach waits until r has all changes up to revision. FutureError after storage.FutureWait.
func (c *Cache) reach(ctx context.Context, r *resource, revision int64) error {
	if revision > c.hub.revision.Load() && revision > r.base {
		if err := c.hub.wait(ctx, revision); err != nil {
			return err
		}
	}
	return c.caughtUp(ctx, r, revision)
}

// retry runs read on the resource of key, again if the resource was dropped meanwhile. If key belongs to no registered
// resource, r is nil. Three tries bound it: a resource that is dropped again and again would else keep its readers for
// ever. read may run several times, so it only sets results.
func (c *Cache) retry(ctx context.Context, key string, read func(r *resource) error) error {
	const tries = 3
	for try := 1; ; try++ {
		r, err := c.resource(ctx, key)
		if err == nil {
			err = read(r)
		}
		if err == nil || try == tries || !errors.Is(err, errDropped) {
			return err
		}
	}
}

// Revision implements storage.Interface.
func (c *Cache) Revision(ctx context.Context) (int64, error) { return c.index.get(ctx) }
