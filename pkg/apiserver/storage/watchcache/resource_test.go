package watchcache

import (
	"testing"
	"time"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/storagetest"
)

// TestSweepWhileLoading: what a sweep sees of a resource that is being loaded is not taken for its state afterwards.
func TestSweepWhileLoading(t *testing.T) {
	t.Parallel()
	r := newResource(storagetest.Prefix, Config{Facts: storagetest.Table(), WindowBytes: 1 << 20})
	r.sweep(time.Now())
	r.loaded(&storage.List{Revision: 7, Items: []*storage.Item{{Key: storagetest.Prefix + "ns/a", Revision: 7}}})
	s, revision, err := r.snapshot(0)
	if err != nil {
		t.Fatal(err)
	}
	if items, err := s.all(func(*storage.Item) error { return nil }); err != nil || revision != 7 || len(items) != 1 {
		t.Fatalf("%d items at %d, %v, want the one at 7", len(items), revision, err)
	}
}

// TestNotCachedAgain: a reader that found the resource registered just before it was forgotten does not cache it for
// ever.
func TestNotCachedAgain(t *testing.T) {
	t.Parallel()
	facts := storagetest.Table()
	c, err := New(t.Context(), memory.New(facts), Config{Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	prefix, _ := facts.Resource(storagetest.Prefix)
	facts.Unregister(prefix)
	c.Forget(prefix)
	if r := c.start(prefix); r != nil || len(*c.resources.Load()) != 0 {
		t.Error("it is cached, and nobody will forget it")
	}
}
