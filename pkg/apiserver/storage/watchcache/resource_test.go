package watchcache

import (
	"testing"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/storagetest"
)

// TestSweepWhileLoading: what a sweep sees of a resource that is being loaded is not taken for its state afterwards.
func TestSweepWhileLoading(t *testing.T) {
	t.Parallel()
	r := newResource(storagetest.Prefix, Config{Facts: storagetest.Table(), WindowBytes: 1 << 20})
	r.sweep()
	r.loaded(&storage.List{Revision: 7, Items: []*storage.Item{{Key: storagetest.Prefix + "ns/a", Revision: 7}}})
	s, revision, err := r.snapshot(0)
	if err != nil || revision != 7 || len(s.all()) != 1 {
		t.Fatalf("%d items at %d, %v, want the one at 7", len(s.all()), revision, err)
	}
}
