package watchcache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/storagetest"
	"bonsai/pkg/apiserver/storage/watchcache"
)

// TestBookmark: about once a minute a quiet watcher is told the revision that writes elsewhere have reached.
func TestBookmark(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := watchcache.New(t.Context(), memory.New(storagetest.Table()),
			watchcache.Config{Facts: storagetest.Table()})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		w, err := c.Watch(t.Context(), storagetest.Prefix, storage.WatchOptions{Bookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for range 3 {
			item, err := c.Create(t.Context(), "/registry/others/"+time.Now().String(), draft("red;x"))
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			events, err := w.Next(t.Context())
			if err != nil || len(events) != 1 || events[0].Type != storage.Bookmark ||
				events[0].Item.Revision != item.Revision {
				t.Fatalf("events %v, %v, want a bookmark at %d", events, err, item.Revision)
			}
			if waited := time.Since(begin); waited > time.Minute {
				t.Fatalf("the bookmark took %v", waited)
			}
		}
	})
}
