package storagetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"bonsai/pkg/apiserver/storage"
)

// reader gives a watch's events one by one.
type reader struct {
	e       *env
	w       storage.Watch
	pending []storage.Event
}

func (e *env) watch(opts storage.WatchOptions) *reader {
	e.Helper()
	w, err := e.s.Watch(e.ctx, Prefix, opts)
	if err != nil {
		e.Fatalf("watch: %v", err)
	}
	e.Cleanup(w.Stop)
	return &reader{e: e, w: w}
}

func (r *reader) next() storage.Event {
	r.e.Helper()
	ev, err := r.tryNext()
	if err != nil {
		r.e.Fatalf("next: %v", err)
	}
	return ev
}

func (r *reader) tryNext() (storage.Event, error) {
	if len(r.pending) == 0 {
		events, err := r.w.Next(r.e.ctx)
		if err != nil {
			return storage.Event{}, err
		}
		if len(events) == 0 {
			return storage.Event{}, errors.New("Next returned no event and no error")
		}
		r.pending = append(r.pending, events...)
	}
	ev := r.pending[0]
	r.pending = r.pending[1:]
	return ev, nil
}

// want reads one event and checks it against the item and its revision.
func (r *reader) want(t storage.EventType, item *storage.Item) {
	r.e.Helper()
	got := r.next()
	if got.Initial && t != storage.Added {
		r.e.Fatalf("event %s %s claims to be an initial one", got.Type, got.Item.Key)
	}
	if got.Type != t || got.Item.Key != item.Key || got.Item.Revision != item.Revision ||
		string(got.Item.Value()) != string(item.Value()) {
		r.e.Fatalf("event %s %s %q at %d, want %s %s %q at %d", got.Type, got.Item.Key, got.Item.Value(),
			got.Item.Revision,
			t, item.Key, item.Value(), item.Revision)
	}
	if wantFacts, err := Facts(item.Value()); err != nil ||
		got.Item.Facts.Labels().Get("color") != wantFacts.Labels().Get("color") {
		r.e.Fatalf("event %s has the facts %+v", got.Item.Key, got.Item.Facts)
	}
}

func testWatch(e *env) {
	w := e.watch(storage.WatchOptions{Revision: e.revision()})
	a := e.create("a", "red")
	w.want(storage.Added, a)
	w.want(storage.Modified, e.update("a", "blue"))
	w.want(storage.Deleted, e.delete("a"))
	w.want(storage.Added, e.create("a", "green"))
}

func testWatchPrefix(e *env) {
	w := e.watch(storage.WatchOptions{Revision: e.revision()})
	for _, k := range []string{"/registry/thingsother/x", "/registry/others/x"} {
		if _, err := e.s.Create(e.ctx, k, draft("red")); err != nil {
			e.Fatal(err)
		}
	}
	ns2, err := e.s.Watch(e.ctx, Prefix+"ns2/", storage.WatchOptions{Revision: e.revision()})
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(ns2.Stop)
	w.want(storage.Added, e.create("a", "red"))
	if _, err := e.s.Create(e.ctx, Prefix+"ns2/b", draft("red")); err != nil {
		e.Fatal(err)
	}
	if got := (&reader{e: e, w: ns2}).next(); got.Item.Key != Prefix+"ns2/b" {
		e.Fatalf("watch of ns2 saw %s", got.Item.Key)
	}
}

func testWatchPast(e *env) {
	from := e.revision()
	// The list makes a cache start before the changes, so that it has them.
	e.list(Prefix, storage.ListOptions{Match: storage.Latest})
	a := e.create("a", "red")
	b := e.create("b", "red")
	a2 := e.update("a", "blue")
	gone := e.delete("b")
	w := e.watch(storage.WatchOptions{Revision: from})
	w.want(storage.Added, a)
	w.want(storage.Added, b)
	w.want(storage.Modified, a2)
	w.want(storage.Deleted, gone)
	later := e.watch(storage.WatchOptions{Revision: b.Revision})
	later.want(storage.Modified, a2)
}

func testWatchZero(e *env) {
	a := e.create("a", "red")
	e.create("b", "blue")
	b := e.update("b", "red")
	w := e.watch(storage.WatchOptions{})
	w.want(storage.Added, a)
	w.want(storage.Added, b)
	w.want(storage.Modified, e.update("a", "blue"))
	w.want(storage.Added, e.create("c", "blue"))
}

func testWatchInitial(e *env) {
	e.create("a", "blue")
	b := e.create("b", "red")
	from := int64(0)
	for round := range 2 {
		w := e.watch(storage.WatchOptions{Initial: true, Revision: from, Filter: red, Bookmarks: true})
		w.want(storage.Added, b)
		end := w.next()
		if end.Type != storage.Bookmark || !end.InitialEnd || end.Item.Revision < b.Revision {
			e.Fatalf("event %+v, want the bookmark that ends the initial events", end)
		}
		name := fmt.Sprint("c", round)
		w.want(storage.Added, e.create(name, "red"))
		from = e.delete(name).Revision
	}
}

func testWatchInitialMany(e *env) {
	const n = 1200
	var wg sync.WaitGroup
	for part := range 8 {
		wg.Go(func() {
			for i := part; i < n; i += 8 {
				e.create(fmt.Sprintf("%05d", i), "red")
			}
		})
	}
	wg.Wait()
	w := e.watch(storage.WatchOptions{Initial: true})
	for i := range n {
		if got := w.next(); got.Type != storage.Added || !got.Initial || got.Item.Key != key(fmt.Sprintf("%05d", i)) {
			e.Fatalf("initial event %d is %s %s, initial: %v", i, got.Type, got.Item.Key, got.Initial)
		}
	}
	if end := w.next(); !end.InitialEnd {
		e.Fatalf("event %+v after the initial ones", end)
	}
	e.create("last", "red")
	if got := w.next(); got.Type != storage.Added || got.Initial {
		e.Fatalf("event %s, initial: %v, after the initial ones", got.Type, got.Initial)
	}
}

func testWatchFilter(e *env) {
	w := e.watch(storage.WatchOptions{Revision: e.revision(), Filter: red})
	e.create("a", "blue")
	r1 := e.update("a", "red")
	w.want(storage.Added, r1)
	r2 := e.update("a", "red")
	w.want(storage.Modified, r2)
	out := e.update("a", "blue")
	w.want(storage.Deleted, r2.At(out.Revision))
	e.update("a", "green")
	e.delete("a")
	again := e.create("a", "red")
	w.want(storage.Added, again)
	w.want(storage.Deleted, e.delete("a"))
}

// churn lets writers create, update and delete concurrently and returns every change made, by revision.
func (e *env) churn(writers, each int) map[int64]storage.EventType {
	var mu sync.Mutex
	made := map[int64]storage.EventType{}
	note := func(t storage.EventType, item *storage.Item) {
		mu.Lock()
		made[item.Revision] = t
		mu.Unlock()
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				name := fmt.Sprintf("%d-%d", w, i)
				note(storage.Added, e.create(name, "red"))
				note(storage.Modified, e.update(name, "blue"))
				if i%2 == 0 {
					note(storage.Deleted, e.delete(name))
				}
			}
		})
	}
	wg.Wait()
	return made
}

// follow reads until every change was seen exactly once and in order.
func (r *reader) follow(made map[int64]storage.EventType, last int64) error {
	for seen := 0; seen < len(made); {
		ev, err := r.tryNext()
		if err != nil {
			return fmt.Errorf("after %d of %d changes: %w", seen, len(made), err)
		}
		if ev.Type == storage.Bookmark {
			continue
		}
		if ev.Item.Revision <= last {
			return fmt.Errorf("revision %d came after %d", ev.Item.Revision, last)
		}
		if made[ev.Item.Revision] != ev.Type {
			return fmt.Errorf("event %s at %d, the change was %q", ev.Type, ev.Item.Revision, made[ev.Item.Revision])
		}
		last = ev.Item.Revision
		seen++
	}
	return nil
}

func testWatchNoGap(e *env) {
	from := e.revision()
	w := e.watch(storage.WatchOptions{Revision: from, Bookmarks: true})
	if err := w.follow(e.churn(8, 30), from); err != nil {
		e.Fatal(err)
	}
}

func testWatchMany(e *env) {
	from := e.revision()
	e.list(Prefix, storage.ListOptions{Match: storage.Latest})
	var readers []*reader
	for range 20 {
		readers = append(readers, e.watch(storage.WatchOptions{Revision: from}))
	}
	made := make(chan struct{})
	var changes map[int64]storage.EventType
	var wg sync.WaitGroup
	for _, r := range readers {
		wg.Go(func() {
			r.pending = append([]storage.Event{r.next()}, r.pending...) // reads beside the writers
			<-made
			if err := r.follow(changes, from); err != nil {
				e.Error(err)
			}
		})
	}
	changes = e.churn(4, 25)
	close(made)
	wg.Wait()
}

// testWatchProgress: a new watch does not tell of progress past a change that it has not delivered.
func testWatchProgress(e *env) {
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 50 {
				if err := e.progress(fmt.Sprintf("%d-%d", n, i)); err != nil {
					e.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// progress opens a watch, creates an item and asks for the progress at once, and reads until the item comes.
func (e *env) progress(name string) error {
	from, err := e.s.Revision(e.ctx)
	if err != nil {
		return err
	}
	w, err := e.s.Watch(e.ctx, key(name), storage.WatchOptions{Revision: from, Raw: true})
	if err != nil {
		return err
	}
	defer w.Stop()
	item, err := e.s.Create(e.ctx, key(name), draft("red"))
	if err != nil {
		return err
	}
	if p, ok := w.(storage.Progresser); ok {
		if err := p.RequestProgress(e.ctx); err != nil {
			return err
		}
	}
	r := &reader{e: e, w: w}
	for {
		switch ev, err := r.tryNext(); {
		case err != nil || ev.Item.Revision == item.Revision && ev.Type == storage.Added:
			return err
		case ev.Item.Revision >= item.Revision:
			return fmt.Errorf("%s at %d before the change at %d", ev.Type, ev.Item.Revision, item.Revision)
		}
	}
}

// testListWatch: a list and a watch from its revision miss nothing, the informers' way.
func testListWatch(e *env) {
	var wg sync.WaitGroup
	wg.Go(func() {
		e.churn(4, 25)
		e.create("marker", "red")
	})
	for range 5 {
		wg.Go(func() {
			l, err := e.s.List(e.ctx, Prefix, storage.ListOptions{})
			if err != nil {
				e.Error(err)
				return
			}
			have := map[string]int64{}
			for _, item := range l.Items {
				have[item.Key] = item.Revision
			}
			w := e.watch(storage.WatchOptions{Revision: l.Revision})
			for have[key("marker")] == 0 { // the list may have had it already
				ev, err := w.tryNext()
				if err != nil {
					e.Errorf("watch from %d: %v", l.Revision, err)
					return
				}
				if _, had := have[ev.Item.Key]; had == (ev.Type == storage.Added) {
					e.Errorf("%s %s at %d, list of %d had it: %v", ev.Type, ev.Item.Key, ev.Item.Revision, l.Revision,
						had)
					return
				}
				if ev.Type == storage.Deleted {
					delete(have, ev.Item.Key)
				} else {
					have[ev.Item.Key] = ev.Item.Revision
				}
			}
			if want := 4*12 + 1; len(have) != want { // of 25 items 12 stay, and the marker
				e.Errorf("%d items in the end, want %d", len(have), want)
			}
		})
	}
	wg.Wait()
}

func testWatchExpired(e *env) {
	a := e.create("a", "red")
	b := e.create("b", "red")
	e.create("c", "red")
	e.compact(e.create("d", "red").Revision)
	w, err := e.s.Watch(e.ctx, Prefix, storage.WatchOptions{Revision: a.Revision})
	if err == nil {
		r := &reader{e: e, w: w}
		e.Cleanup(w.Stop)
		var ev storage.Event
		if ev, err = r.tryNext(); err == nil {
			if ev.Item.Revision != b.Revision {
				e.Fatalf("a watch from %d began at %d, want %d or expiry", a.Revision, ev.Item.Revision, b.Revision)
			}
			return
		}
	}
	e.wantErr(err, storage.ErrExpired)
}

func testWatchStop(e *env) {
	w := e.watch(storage.WatchOptions{Revision: e.revision()})
	done := make(chan error, 1)
	go func() {
		_, err := w.w.Next(e.ctx)
		done <- err
	}()
	w.w.Stop()
	w.w.Stop()
	select {
	case err := <-done:
		if err == nil {
			e.Fatal("Next of a stopped watch returned no error")
		}
	case <-e.ctx.Done():
		e.Fatal("Stop did not end Next")
	}
}

func testWatchContext(e *env) {
	w := e.watch(storage.WatchOptions{Revision: e.revision()})
	ctx, cancel := context.WithCancel(e.ctx)
	done := make(chan error, 1)
	go func() {
		_, err := w.w.Next(ctx)
		done <- err
	}()
	cancel()
	e.wantErr(<-done, context.Canceled)
}

// testWatchFuture: a watch from a revision that another server has seen already begins right after it.
func testWatchFuture(e *env) {
	from := e.revision()
	w := e.watch(storage.WatchOptions{Revision: from + 2})
	e.create("a", "red")
	e.create("b", "red")
	w.want(storage.Added, e.create("c", "red"))
}
