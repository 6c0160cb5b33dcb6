package watchcache

import (
	"fmt"
	"testing"
	"testing/synctest"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/storagetest"
)

// TestQuietWatcherHoldsNothing: while a watcher waits it has neither the room that many events took nor the items of
// the last ones, whether they were initial events or changes.
func TestQuietWatcherHoldsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		facts := storagetest.Table()
		c, err := New(t.Context(), memory.New(facts), Config{Facts: facts})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		known, err := storagetest.Facts([]byte("red;"))
		if err != nil {
			t.Fatal(err)
		}
		made := 0
		create := func(n int) {
			for range n {
				made++
				if _, err := c.Create(t.Context(), fmt.Sprintf("%sns/%d", storagetest.Prefix, made),
					storage.Draft{Value: []byte("red;"), Facts: &known}); err != nil {
					t.Fatal(err)
				}
			}
		}
		create(100)
		got, err := c.Watch(t.Context(), storagetest.Prefix, storage.WatchOptions{Initial: true})
		if err != nil {
			t.Fatal(err)
		}
		w := got.(*watcher)
		seen := make(chan int)
		go func() {
			defer close(seen)
			for {
				events, err := w.Next(t.Context())
				if err != nil {
					return
				}
				seen <- len(events)
			}
		}()
		receive := func(n int) {
			for got := 0; got < n; {
				got += <-seen
			}
			synctest.Wait() // until it waits
			if n := max(cap(w.events), cap(w.changes)); n > restEvents {
				t.Errorf("room for %d events while there are none", n)
			}
			for _, e := range w.events[:cap(w.events)] {
				if e.Item != nil {
					t.Errorf("%s is held", e.Item.Key)
				}
			}
		}
		receive(101) // with the bookmark behind the initial events
		create(1)
		receive(1)
		create(50)
		receive(50)
		w.Stop()
		<-seen
	})
}
