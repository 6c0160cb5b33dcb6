// Package memory is a storage.Interface in a map: the plain implementation that unit tests use and that the others are
// compared with. It keeps every change until Compact, so it is not for production.
//
// One mutex guards everything. The functions of callers (change, check) run without it, as they may take long or use
// the storage. Filters run under it, which is enough for tests.
package memory

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"bonsai/pkg/apiserver/storage"
)

// change is one entry of the history: prev is nil for a creation, cur for a deletion.
type change struct {
	revision  int64
	key       string
	prev, cur *storage.Item
}

// Storage is the in-memory implementation. Make it with New.
type Storage struct {
	facts *storage.FactsTable

	mu        sync.Mutex
	items     map[string]*storage.Item
	history   []change
	compacted int64 // changes up to this revision have left the history
	revision  int64
	moved     chan struct{} // closed and replaced when revision moves or a progress is asked for
	progress  int64         // number of RequestProgress calls
}

var _ storage.Interface = (*Storage)(nil)

// New returns an empty storage at revision 1, as etcd starts. facts may be nil: items then have only the facts of their
// drafts.
func New(facts *storage.FactsTable) *Storage {
	return &Storage{facts: facts, items: map[string]*storage.Item{}, revision: 1, compacted: 1,
		moved: make(chan struct{})}
}

// put stores cur (nil: deletes) at a new revision. The caller holds mu.
func (s *Storage) put(key string, cur *storage.Item) {
	s.revision++
	c := change{revision: s.revision, key: key, prev: s.items[key], cur: cur}
	if cur != nil {
		cur.Revision = s.revision
		s.items[key] = cur
	} else {
		delete(s.items, key)
	}
	s.history = append(s.history, c)
	s.wake()
}

// wake tells all that wait for a revision to look again. The caller holds mu.
func (s *Storage) wake() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// write stores d under key and arms its TTL. The caller holds mu.
func (s *Storage) write(key string, d storage.Draft) (*storage.Item, error) {
	facts, err := s.facts.Of(key, d)
	if err != nil {
		return nil, err
	}
	item := storage.NewItem(key, d.Value, 0, facts)
	s.put(key, item)
	if d.TTL > 0 {
		time.AfterFunc(d.TTL, func() { s.expire(item) })
	}
	return item, nil
}

// expire deletes an item whose TTL is over, on the timer's goroutine. An item that was replaced or deleted meanwhile
// has another timer or none, so it leaves that alone.
func (s *Storage) expire(item *storage.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items[item.Key] == item {
		s.put(item.Key, nil)
	}
}

// Create implements storage.Interface.
func (s *Storage) Create(ctx context.Context, key string, d storage.Draft) (*storage.Item, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memory: create %s: %w", key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items[key] != nil {
		return nil, fmt.Errorf("create %s: %w", key, storage.ErrExists)
	}
	return s.write(key, d)
}

// Get implements storage.Interface.
func (s *Storage) Get(ctx context.Context, key string, notOlderThan int64) (*storage.Item, error) {
	if err := s.await(ctx, notOlderThan); err != nil {
		return nil, err
	}
	return s.current(key)
}

func (s *Storage) current(key string) (*storage.Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if item := s.items[key]; item != nil {
		return item, nil
	}
	return nil, fmt.Errorf("get %s: %w", key, storage.ErrNotFound)
}

// await waits until the storage has reached revision, at most storage.FutureWait.
func (s *Storage) await(ctx context.Context, revision int64) error {
	timeout := time.NewTimer(storage.FutureWait)
	defer timeout.Stop()
	for {
		s.mu.Lock()
		current, moved := s.revision, s.moved
		s.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("memory: wait for revision %d: %w", revision, err)
		}
		if current >= revision {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
		case <-timeout.C:
			return &storage.FutureError{Asked: revision, Current: current}
		}
	}
}

// List implements storage.Interface.
func (s *Storage) List(ctx context.Context, prefix string, opts storage.ListOptions) (*storage.List, error) {
	start, opts, err := opts.From(prefix)
	if err != nil {
		return nil, err
	}
	if opts.Match != storage.Latest {
		if err := s.await(ctx, opts.Revision); err != nil {
			return nil, err
		}
	} else if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memory: list %s: %w", prefix, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	items, revision := s.items, s.revision
	if opts.Match == storage.Exact {
		if items, err = s.at(opts.Revision); err != nil {
			return nil, err
		}
		revision = opts.Revision
	}
	return storage.Page(ordered(items, prefix, start), revision, opts), nil
}

// at returns the items as they were at revision, which it finds by undoing the history in a copy. It fails with
// ErrExpired if the history since revision has been compacted; a revision in the future has the present items. The
// caller holds mu.
func (s *Storage) at(revision int64) (map[string]*storage.Item, error) {
	if revision < s.compacted {
		return nil, fmt.Errorf("list at revision %d: %w", revision, storage.ErrExpired)
	}
	items := maps.Clone(s.items)
	for _, c := range slices.Backward(s.history) {
		if c.revision <= revision {
			break
		}
		if c.prev != nil {
			items[c.key] = c.prev
		} else {
			delete(items, c.key)
		}
	}
	return items, nil
}

// ordered gives the items under prefix in key order, from the key start on. It sorts all keys each time, which is fine
// for tests.
func ordered(items map[string]*storage.Item, prefix, start string) iter.Seq[*storage.Item] {
	return func(yield func(*storage.Item) bool) {
		for _, key := range slices.Sorted(maps.Keys(items)) {
			if strings.HasPrefix(key, prefix) && key >= start && !yield(items[key]) {
				return
			}
		}
	}
}

// Update implements storage.Interface.
func (s *Storage) Update(ctx context.Context, key string,
	change func(*storage.Item) (storage.Draft, error)) (*storage.Item, error) {
	return s.UpdateFrom(ctx, nil, key, change)
}

// UpdateFrom is Update that shows change the item hint first, which may be old; nil: the newest. An error of change, or
// a value that changes nothing, ends it only if the item was the newest (holds).
func (s *Storage) UpdateFrom(ctx context.Context, hint *storage.Item, key string,
	change func(*storage.Item) (storage.Draft, error)) (*storage.Item, error) {
	for item := hint; ; item = nil {
		cached := item != nil
		if !cached {
			var err error
			if item, err = s.Get(ctx, key, 0); err != nil {
				return nil, err
			}
		}
		d, err := change(item)
		unchanged := err == nil && bytes.Equal(d.Value, item.Value())
		if err != nil || unchanged {
			if holds, readErr := s.holds(ctx, item, cached); readErr != nil {
				return nil, readErr
			} else if !holds {
				continue
			}
			if err != nil {
				return nil, err
			}
			return item, nil
		}
		if written, done, err := s.swap(key, item.Revision, d); done {
			return written, err
		}
	}
}

// holds reports whether what was decided on item still counts: a cached one may be older than what is stored.
func (s *Storage) holds(ctx context.Context, item *storage.Item, cached bool) (bool, error) {
	if !cached {
		return true, nil
	}
	newest, err := s.Get(ctx, item.Key, 0)
	if err != nil {
		return false, err
	}
	return newest.Revision == item.Revision, nil
}

// swap writes d if key is still at revision; done is false if another writer came between.
func (s *Storage) swap(key string, revision int64, d storage.Draft) (item *storage.Item, done bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.items[key]; now == nil || now.Revision != revision {
		return nil, false, nil
	}
	item, err = s.write(key, d)
	return item, true, err
}

// Delete implements storage.Interface.
func (s *Storage) Delete(ctx context.Context, key string, check func(*storage.Item) error) (*storage.Item, error) {
	return s.DeleteFrom(ctx, nil, key, check)
}

// DeleteFrom is Delete that shows check the item hint first, which may be old; nil: the newest.
func (s *Storage) DeleteFrom(ctx context.Context, hint *storage.Item, key string,
	check func(*storage.Item) error) (*storage.Item, error) {
	for item := hint; ; item = nil {
		cached := item != nil
		if !cached {
			var err error
			if item, err = s.Get(ctx, key, 0); err != nil {
				return nil, err
			}
		}
		if err := check(item); err != nil {
			if holds, readErr := s.holds(ctx, item, cached); readErr != nil {
				return nil, readErr
			} else if !holds {
				continue
			}
			return nil, err
		}
		s.mu.Lock()
		if now := s.items[key]; now != nil && now.Revision == item.Revision {
			s.put(key, nil)
			deleted := item.At(s.revision)
			s.mu.Unlock()
			return deleted, nil
		}
		s.mu.Unlock()
	}
}

// Discard implements storage.Interface. Memory keeps nothing sealed, and does not read facts.
func (s *Storage) Discard(ctx context.Context, key string, decodes func(*storage.Item) bool, dry bool) (int64, error) {
	for {
		item, err := s.Get(ctx, key, 0)
		if err != nil {
			return 0, err
		}
		if decodes(item) {
			return 0, fmt.Errorf("discard %s: %w", key, storage.ErrReadable)
		}
		if dry {
			return 0, nil
		}
		s.mu.Lock()
		if now := s.items[key]; now != nil && now.Revision == item.Revision {
			s.put(key, nil)
			defer s.mu.Unlock()
			return s.revision, nil
		}
		s.mu.Unlock()
	}
}

// Revision implements storage.Interface.
func (s *Storage) Revision(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("memory: read the revision: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision, nil
}

// Compact forgets the history up to revision: lists and watches from before it expire.
func (s *Storage) Compact(_ context.Context, revision int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted = max(s.compacted, min(revision, s.revision))
	s.history = slices.DeleteFunc(s.history, func(c change) bool { return c.revision <= s.compacted })
	return nil
}

// Compacted is the oldest revision that can still be read.
func (s *Storage) Compacted() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compacted
}

// Fingerprint sums up the keys under prefix as of revision. It fails with ErrExpired if the history since then has been
// compacted.
func (s *Storage) Fingerprint(_ context.Context, prefix string, revision int64) (storage.Fingerprint, error) {
	var f storage.Fingerprint
	s.mu.Lock()
	defer s.mu.Unlock()
	items, err := s.at(revision)
	if err != nil {
		return f, err
	}
	for item := range ordered(items, prefix, prefix) {
		f.Add(item.Key, item.Revision)
	}
	return f, nil
}
