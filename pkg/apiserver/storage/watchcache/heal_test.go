package watchcache_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/apiserver/storage/etcdtest"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/storagetest"
	"bonsai/pkg/apiserver/storage/watchcache"
)

func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func draft(s string) storage.Draft { return storage.Draft{Value: []byte(s)} }

func create(t testing.TB, s storage.Interface, name, value string) *storage.Item {
	t.Helper()
	item, err := s.Create(deadline(t), storagetest.Prefix+name, draft(value))
	if err != nil {
		t.Fatal(err)
	}
	return item
}

func listLatest(t testing.TB, s storage.Interface) *storage.List {
	t.Helper()
	l, err := s.List(deadline(t), storagetest.Prefix, storage.ListOptions{Match: storage.Latest})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestEtcdKilled: writers and a watcher go on over kill -9 of etcd; the watcher sees each change once and in order.
func TestEtcdKilled(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	c := newCache(t, newEtcd(t, server, ""), watchcache.Config{})
	ctx := deadline(t)
	w, err := c.Watch(ctx, storagetest.Prefix, storage.WatchOptions{Initial: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	var written sync.Map // revision of each write that was acknowledged
	var count atomic.Int64
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for n := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				// A write that fails may have happened: it is seen or not, but never counted.
				if item, err := c.Create(ctx, fmt.Sprintf("%sns/%d-%05d", storagetest.Prefix, n, i),
					draft("red;x")); err == nil {
					written.Store(item.Revision, item)
					count.Add(1)
				}
			}
		})
	}
	until(t, func() bool { return count.Load() > 100 })
	server.Kill()
	server.Run(t)
	before := count.Load()
	until(t, func() bool { return count.Load() > before+100 })
	close(stop)
	writers.Wait()
	end := create(t, c, "ns/end", "red;end")
	seen := map[int64]bool{}
	for last := int64(0); last < end.Revision; {
		events, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("watch at %d: %v", last, err)
		}
		for _, ev := range events {
			if ev.Item.Revision <= last && ev.Type != storage.Bookmark {
				t.Fatalf("revision %d came after %d", ev.Item.Revision, last)
			}
			last = ev.Item.Revision
			seen[last] = true
		}
	}
	written.Range(func(revision, _ any) bool {
		if !seen[revision.(int64)] {
			t.Errorf("the watch missed revision %d", revision)
		}
		return true
	})
	if l := listLatest(t, c); int64(len(l.Items)) < count.Load()+1 {
		t.Errorf("%d items listed after %d were written", len(l.Items), count.Load()+1)
	}
}

func until(t testing.TB, ok func() bool) {
	t.Helper()
	ctx := deadline(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("did not happen")
		}
	}
}

// TestLateCache: a watch from before the cache was made gets everything since, from the backend's history and then from
// the window.
func TestLateCache(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]backend{
		"memory": memory.New(storagetest.Table()),
		"etcd":   newEtcd(t, etcdtest.Start(t), ""),
	} {
		t.Run(name, func(t *testing.T) {
			ctx := deadline(t)
			first := create(t, b, "ns/a", "red;1")
			for i := range 1200 {
				create(t, b, fmt.Sprintf("ns/b%04d", i), "red;2")
			}
			c := newCache(t, b, watchcache.Config{})
			listLatest(t, c)
			w, err := c.Watch(ctx, storagetest.Prefix, storage.WatchOptions{Revision: first.Revision})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.Stop)
			for i, last := 0, first.Revision; i < 1250; {
				if i == 1200 { // history is over
					for n := range 50 {
						create(t, c, fmt.Sprintf("ns/c%04d", n), "red;3")
					}
				}
				events, err := w.Next(ctx)
				if err != nil {
					t.Fatalf("after %d events: %v", i, err)
				}
				for _, ev := range events {
					if ev.Type != storage.Added || ev.Item.Revision != last+1 {
						t.Fatalf("event %d is %s at %d, want ADDED at %d", i, ev.Type, ev.Item.Revision, last+1)
					}
					last++
					i++
				}
			}
		})
	}
}

// TestSlowReader: a reader that falls out of the window's bytes gets ErrExpired, others go on.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	c := newCache(t, memory.New(storagetest.Table()), watchcache.Config{WindowBytes: 50_000})
	ctx := deadline(t)
	create(t, c, "ns/a", "red;0")
	l := listLatest(t, c)
	w, err := c.Watch(ctx, storagetest.Prefix, storage.WatchOptions{Revision: l.Revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	for i := range 600 {
		value := draft(fmt.Sprintf("red;%d", i))
		if _, err := c.Update(ctx, storagetest.Prefix+"ns/a", func(*storage.Item) (storage.Draft, error) {
			return value, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	listLatest(t, c)
	if _, err := w.Next(ctx); !errors.Is(err, storage.ErrExpired) {
		t.Fatalf("slow reader got %v", err)
	}
}

// TestWriterSharesItem: what a watcher and a reader get is the very item the writer made, and nothing decoded it again.
func TestWriterSharesItem(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]func(*testing.T) backend{
		"memory": func(*testing.T) backend { return memory.New(storagetest.Table()) },
		"etcd":   func(t *testing.T) backend { return newEtcd(t, etcdtest.Start(t), "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCache(t, b(t), watchcache.Config{})
			ctx := deadline(t)
			w, err := c.Watch(ctx, storagetest.Prefix, storage.WatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.Stop)
			check := func(written *storage.Item) {
				t.Helper()
				events, err := w.Next(ctx)
				if err != nil || len(events) != 1 || events[0].Item != written {
					t.Fatalf("events %v, %v, want the writer's item", events, err)
				}
				if got, err := c.Get(ctx, written.Key, 0); err != nil || got != written {
					t.Fatalf("got %p, %v, want the writer's item %p", got, err, written)
				}
			}
			for i := range 50 {
				key := fmt.Sprintf("ns/%d", i)
				check(create(t, c, key, "red;1"))
				item, err := c.Update(ctx, storagetest.Prefix+key, func(*storage.Item) (storage.Draft, error) {
					return draft("blue;2"), nil
				})
				if err != nil {
					t.Fatal(err)
				}
				check(item)
			}
		})
	}
}

// lossy is a backend that can lie: the watch leaves out a key, or the revision goes back.
type lossy struct {
	*memory.Storage
	hide atomic.Pointer[string]
	back atomic.Int64
}

func (l *lossy) Revision(ctx context.Context) (int64, error) {
	r, err := l.Storage.Revision(ctx)
	return r - l.back.Load(), err
}

func (l *lossy) Watch(ctx context.Context, prefix string, opts storage.WatchOptions) (storage.Watch, error) {
	w, err := l.Storage.Watch(ctx, prefix, opts)
	return &lossyWatch{w, l}, err
}

type lossyWatch struct {
	storage.Watch
	l *lossy
}

func (w *lossyWatch) Next(ctx context.Context) ([]storage.Event, error) {
	events, err := w.Watch.Next(ctx)
	for i, ev := range events {
		if hidden := w.l.hide.Load(); hidden != nil && ev.Item.Key == *hidden {
			events[i] = storage.Event{Type: storage.Bookmark, Item: &storage.Item{Revision: ev.Item.Revision}}
		}
	}
	return events, err
}

// TestSelfCheck: a change that never arrives is found by comparison, watches expire, and the next reader sees the
// truth.
func TestSelfCheck(t *testing.T) {
	t.Parallel()
	b := &lossy{Storage: memory.New(storagetest.Table())}
	c := newCache(t, b, watchcache.Config{CheckInterval: 20 * time.Millisecond})
	ctx := deadline(t)
	create(t, c, "ns/a", "red;1")
	l := listLatest(t, c)
	w, err := c.Watch(ctx, storagetest.Prefix, storage.WatchOptions{Revision: l.Revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	hidden := storagetest.Prefix + "ns/b"
	b.hide.Store(&hidden)
	create(t, c, "ns/b", "red;2")
	for err == nil {
		_, err = w.Next(ctx)
	}
	if !errors.Is(err, storage.ErrExpired) {
		t.Fatalf("watch of a wrong cache ended with %v", err)
	}
	if l := listLatest(t, c); len(l.Items) != 2 {
		t.Fatalf("%d items after the cache was rebuilt", len(l.Items))
	}
}

// TestSelfCheckOfAnIdleCache: a cache whose last change is compacted away is compared at a revision that still exists.
func TestSelfCheckOfAnIdleCache(t *testing.T) {
	t.Parallel()
	b := &checked{Store: newEtcd(t, etcdtest.Start(t), ""), sums: make(chan error, 100)}
	c := newCache(t, b, watchcache.Config{CheckInterval: 20 * time.Millisecond})
	ctx := deadline(t)
	create(t, c, "ns/a", "red;1")
	listLatest(t, c)
	elsewhere, err := b.Create(ctx, "/elsewhere/x", draft("y"))
	if err != nil {
		t.Fatal(err)
	}
	listLatest(t, c) // the cache's watch is open, so that it does not miss what is compacted
	if err := b.Compact(ctx, elsewhere.Revision); err != nil {
		t.Fatal(err)
	}
	for len(b.sums) > 0 {
		<-b.sums
	}
	for range 2 { // the first may have begun before
		select {
		case err = <-b.sums:
		case <-ctx.Done():
			t.Fatal("no comparison")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// checked tells how the comparisons of a cache went.
type checked struct {
	*etcd.Store
	sums chan error
}

func (c *checked) Fingerprint(ctx context.Context, prefix string, revision int64) (storage.Fingerprint, error) {
	f, err := c.Store.Fingerprint(ctx, prefix, revision)
	select {
	case c.sums <- err:
	case <-ctx.Done():
	}
	return f, err
}

// TestHistoryLost: a storage whose revision goes back is noticed by the next consistent read, and the cache rebuilt.
func TestHistoryLost(t *testing.T) {
	t.Parallel()
	b := &lossy{Storage: memory.New(storagetest.Table())}
	c := newCache(t, b, watchcache.Config{})
	ctx := deadline(t)
	create(t, c, "ns/a", "red;1")
	listLatest(t, c)
	create(t, c, "ns/b", "red;2")
	listLatest(t, c) // the hub has seen b
	w, err := c.Watch(ctx, storagetest.Prefix, storage.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	b.back.Store(1)
	if _, err := c.Get(ctx, storagetest.Prefix+"ns/a", 0); err == nil {
		t.Fatal("a read of a storage that lost history succeeded")
	}
	for err == nil {
		_, err = w.Next(ctx)
	}
	if !errors.Is(err, storage.ErrExpired) {
		t.Fatalf("watch ended with %v", err)
	}
	b.back.Store(0)
	if l := listLatest(t, c); len(l.Items) != 2 {
		t.Fatalf("%d items after the cache was rebuilt", len(l.Items))
	}
}

// TestCompactedWhileAway: when the hub's watch is lost and the changes since are compacted, watches expire and readers
// go on.
func TestCompactedWhileAway(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	store := newEtcd(t, server, "")
	away := &gate{Backend: store, Compacter: store}
	c := newCache(t, away, watchcache.Config{})
	ctx := deadline(t)
	create(t, c, "ns/a", "red;1")
	l := listLatest(t, c)
	w, err := c.Watch(ctx, storagetest.Prefix, storage.WatchOptions{Revision: l.Revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	away.shut()
	create(t, store, "ns/b", "red;2")
	create(t, store, "ns/c", "red;3")
	if err := store.Compact(ctx, create(t, store, "ns/d", "red;4").Revision); err != nil {
		t.Fatal(err)
	}
	away.open()
	for err == nil {
		_, err = w.Next(ctx)
	}
	if !errors.Is(err, storage.ErrExpired) {
		t.Fatalf("watch over a gap ended with %v", err)
	}
	if l := listLatest(t, c); len(l.Items) != 4 {
		t.Fatalf("%d items after the gap", len(l.Items))
	}
}

// gate is a backend whose watches can be cut.
type gate struct {
	watchcache.Backend
	storagetest.Compacter
	mu      sync.Mutex
	closed  bool
	watches []storage.Watch
}

func (g *gate) Watch(ctx context.Context, prefix string, opts storage.WatchOptions) (storage.Watch, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errors.New("no way")
	}
	w, err := g.Backend.Watch(ctx, prefix, opts)
	if err == nil {
		g.watches = append(g.watches, w)
	}
	return w, err
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, w := range g.watches {
		w.Stop()
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}

// TestClose: a server that stops does not tell its watchers that their revision is gone.
func TestClose(t *testing.T) {
	t.Parallel()
	c := newCache(t, memory.New(storagetest.Table()), watchcache.Config{})
	w, err := c.Watch(t.Context(), storagetest.Prefix, storage.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	ended := make(chan error, 1)
	go func() {
		_, err := w.Next(t.Context())
		ended <- err
	}()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || errors.Is(err, storage.ErrExpired) {
		t.Fatalf("watch of a closed cache ended with %v", err)
	}
}

// TestForget: a resource whose facts are read differently is recreated.
func TestForget(t *testing.T) {
	t.Parallel()
	table := storagetest.Table()
	c, err := watchcache.New(t.Context(), memory.New(nil), watchcache.Config{Facts: table})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	item := create(t, c, "ns/a", "red;1")
	if got, err := c.Get(t.Context(), item.Key, 0); err != nil || got.Facts.Labels().Get("color") != "red" {
		t.Fatalf("got %+v, %v", got, err)
	}
	w, err := c.Watch(t.Context(), storagetest.Prefix, storage.WatchOptions{Revision: item.Revision})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	c.Forget(storagetest.Prefix)
	if _, err := w.Next(deadline(t)); !errors.Is(err, storage.ErrExpired) {
		t.Fatalf("watch of a forgotten resource ended with %v", err)
	}
	listLatest(t, c)
}

// TestColdReaders: many first users of a resource share one load, and one who gives up does not end it for the others.
func TestColdReaders(t *testing.T) {
	t.Parallel()
	b := memory.New(storagetest.Table())
	item := create(t, b, "ns/a", "red;1")
	c := newCache(t, b, watchcache.Config{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Get(gone, item.Key, 0); !errors.Is(err, context.Canceled) {
		t.Fatalf("get with an ended context: %v", err)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if got, err := c.Get(t.Context(), item.Key, 0); err != nil || got.Revision != item.Revision {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	wg.Wait()
}
