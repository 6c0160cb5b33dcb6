package watchcache

import (
	"testing"
	"time"

	"bonsai/pkg/apiserver/storage"
)

func TestWindowBounds(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1000, 0)
	for _, c := range []struct {
		name    string
		pushes  int
		every   time.Duration
		value   int // bytes of each superseded value
		max     int
		atLeast int
		atMost  int
	}{
		{"few and old are kept", 500, time.Hour, 10, 1 << 20, 500, 500},
		{"old ones go beyond the minimum", 3000, time.Second, 10, 1 << 20, windowEvents, windowEvents + 1},
		{"a busy minute is kept whole", 5000, time.Millisecond, 10, 1 << 20, 5000, 5000},
		{"never more than the bytes", 5000, time.Millisecond, 1000, 100 * (1000 + changeBytes), 99, 101},
		{"one huge change fits", 3, time.Millisecond, 1000, 10, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := window{maxBytes: c.max, floor: 1}
			for i := range c.pushes {
				item := storage.NewItem("", make([]byte, c.value), 0, storage.Facts{})
				w.push(&change{revision: int64(10 * (i + 1)), at: begin.Add(time.Duration(i) * c.every), prev: item,
					cur: item})
			}
			kept := int(w.end - w.first)
			if kept < c.atLeast || kept > c.atMost {
				t.Fatalf("%d changes are kept, want %d to %d", kept, c.atLeast, c.atMost)
			}
			if w.floor != max(1, int64(10*(c.pushes-kept))) {
				t.Fatalf("floor %d with %d of %d changes kept", w.floor, kept, c.pushes)
			}
			n, ok := w.after(w.floor)
			if !ok || n != w.first {
				t.Fatalf("after the floor comes %d, %v, want the first, %d", n, ok, w.first)
			}
			if _, ok := w.after(w.floor - 1); ok {
				t.Fatal("the window claims to know what came before its floor")
			}
			if n, ok := w.after(w.at(w.end-1).revision + 5); !ok || n != w.end {
				t.Fatalf("after the newest comes %d, %v, want the end, %d", n, ok, w.end)
			}
			if changes, ok := w.read(nil, w.first, 10_000); !ok || len(changes) != kept ||
				changes[0].revision <= w.floor {
				t.Fatalf("read %d, %v", len(changes), ok)
			}
			if _, ok := w.read(nil, w.first-1, 1); ok && w.first > 0 {
				t.Fatal("read a change that is not kept")
			}
		})
	}
}

// TestOldEncodingsAreDropped: what was made for the watchers of a change goes when the change is no longer among the
// latest: all of what it superseded or removed, and of what it set what only watchers want.
func TestOldEncodingsAreDropped(t *testing.T) {
	t.Parallel()
	var list, event storage.Form
	item := func() *storage.Item { return &storage.Item{} }
	made := map[*storage.Item]int{}
	encode := func(i *storage.Item) (storage.Bytes, error) { made[i]++; return storage.Bytes{}, nil }
	get := func(items ...*storage.Item) {
		for _, i := range items {
			_, _ = i.Encoded(&list, storage.WhileAsked, encode)
			_, _ = i.Encoded(&event, storage.WhileRecent, encode)
		}
	}
	w := window{maxBytes: 1 << 20}
	at := time.Unix(1000, 0)
	prev, cur := item(), item()
	w.push(&change{revision: 1, at: at, prev: prev, cur: cur})
	removal := &change{revision: 2, at: at, prev: item()}
	w.push(removal)
	gone := removal.event(nil).Item
	get(prev, cur, gone)
	for i := range recentChanges - 2 {
		w.push(&change{revision: int64(i + 3), at: at, cur: item()})
	}
	if get(prev, cur, gone); made[prev] != 2 || made[cur] != 2 || made[gone] != 2 {
		t.Fatalf("encodings were dropped while the changes were among the latest: %d, %d, %d", made[prev], made[cur],
			made[gone])
	}
	for i := range 2 {
		w.push(&change{revision: int64(recentChanges + i), at: at, cur: item()})
	}
	if get(prev, cur, gone); made[prev] != 4 || made[cur] != 3 || made[gone] != 4 {
		t.Fatalf("made %d, %d, %d times, want 4, 3, 4", made[prev], made[cur], made[gone])
	}
}
