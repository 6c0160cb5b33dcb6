package watchcache_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/storagetest"
	"bonsai/pkg/apiserver/storage/watchcache"
)

// silent tells its revision no more once it is down.
type silent struct {
	*memory.Storage
	down atomic.Bool
}

func (s *silent) Revision(ctx context.Context) (int64, error) {
	if s.down.Load() {
		return 0, storage.ErrTimeout
	}
	return s.Storage.Revision(ctx)
}

// TestWatchOfWhatIsAtHand: a watch that takes any snapshot begins though the storage does not answer; one of the newest
// does not.
func TestWatchOfWhatIsAtHand(t *testing.T) {
	t.Parallel()
	b := &silent{Storage: memory.New(storagetest.Table())}
	c := newCache(t, b, watchcache.Config{})
	if _, err := c.Create(t.Context(), storagetest.Prefix+"ns/a", storage.Draft{Value: []byte(`red;1`)}); err != nil {
		t.Fatal(err)
	}
	// the cache has it
	if _, err := c.List(t.Context(), storagetest.Prefix, storage.ListOptions{Match: storage.Latest}); err != nil {
		t.Fatal(err)
	}
	b.down.Store(true)
	if _, err := c.Watch(t.Context(), storagetest.Prefix, storage.WatchOptions{}); !errors.Is(err, storage.ErrTimeout) {
		t.Errorf("a watch of the newest: %v", err)
	}
	w, err := c.Watch(t.Context(), storagetest.Prefix, storage.WatchOptions{AtHand: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if events, err := w.Next(t.Context()); err != nil || len(events) != 1 || events[0].Type != storage.Added {
		t.Errorf("it begins with %+v, %v", events, err)
	}
}
