package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"bonsai/pkg/apiserver/storage"
)

func testCreate(e *env) {
	before := e.revision()
	d := draft("red")
	item, err := e.s.Create(e.ctx, key("a"), d)
	if err != nil {
		e.Fatal(err)
	}
	if item.Key != key("a") || !bytes.Equal(item.Value(), d.Value) || item.Revision <= before {
		e.Fatalf("created %+v after revision %d", item, before)
	}
	_, err = e.s.Create(e.ctx, key("a"), draft("blue"))
	e.wantErr(err, storage.ErrExists)
	if got, err := e.s.Get(e.ctx, key("a"), 0); err != nil || got.Revision != item.Revision || !red(got) {
		e.Fatalf("got %+v, %v", got, err)
	}
}

func testCreateRace(e *env) {
	var won atomic.Int64
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			_, err := e.s.Create(e.ctx, key("a"), draft("red"))
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, storage.ErrExists) {
				e.Errorf("create: %v", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		e.Fatalf("%d of 10 creates of one key succeeded", won.Load())
	}
}

func testGet(e *env) {
	_, err := e.s.Get(e.ctx, key("a"), 0)
	e.wantErr(err, storage.ErrNotFound)
	item := e.create("a", "red")
	got, err := e.s.Get(e.ctx, key("a"), 0)
	if err != nil || got.Revision != item.Revision || got.Key != item.Key || !bytes.Equal(got.Value(), item.Value()) {
		e.Fatalf("got %+v, %v, want %+v", got, err, item)
	}
	_, err = e.s.Get(e.ctx, Prefix+"ns/", 0)
	e.wantErr(err, storage.ErrNotFound)
}

func testGetLinearizable(e *env) {
	e.create("a", "red")
	for range 50 {
		want := e.update("a", "red")
		if got, err := e.s.Get(e.ctx, key("a"), 0); err != nil || got.Revision < want.Revision {
			e.Fatalf("got %+v, %v after writing revision %d", got, err, want.Revision)
		}
	}
	e.delete("a")
	_, err := e.s.Get(e.ctx, key("a"), 0)
	e.wantErr(err, storage.ErrNotFound)
}

func testGetNotOlderThan(e *env) {
	e.create("a", "red")
	want := e.update("a", "blue")
	if got, err := e.s.Get(e.ctx, key("a"), want.Revision); err != nil || got.Revision != want.Revision {
		e.Fatalf("got %+v, %v, want revision %d", got, err, want.Revision)
	}
	later := e.create("b", "red")
	if got, err := e.s.Get(e.ctx, key("a"), later.Revision); err != nil || got.Revision != want.Revision {
		e.Fatalf("got %+v, %v, want revision %d", got, err, want.Revision)
	}
}

func testGetFuture(e *env) {
	item := e.create("a", "red")
	begin := time.Now()
	_, err := e.s.Get(e.ctx, key("a"), item.Revision+1000)
	e.wantErr(err, storage.ErrFuture)
	if waited := time.Since(begin); waited < storage.FutureWait/2 {
		e.Fatalf("waited only %v", waited)
	}
	var future *storage.FutureError
	if !errors.As(err, &future) || future.Asked != item.Revision+1000 || future.Current < item.Revision {
		e.Fatalf("error %v does not say what was asked and what is", err)
	}
}

func testUpdate(e *env) {
	change := func(*storage.Item) (storage.Draft, error) { return draft("red"), nil }
	_, err := e.s.Update(e.ctx, key("a"), change)
	e.wantErr(err, storage.ErrNotFound)
	e.create("a", "red")
	item, err := e.s.Update(e.ctx, key("a"), func(cur *storage.Item) (storage.Draft, error) {
		return storage.Draft{Value: append(bytes.Clone(cur.Value()), '!')}, nil
	})
	if err != nil || item.Value()[len(item.Value())-1] != '!' {
		e.Fatalf("updated to %+v, %v", item, err)
	}
	if got, err := e.s.Get(e.ctx, key("a"), 0); err != nil || got.Revision != item.Revision {
		e.Fatalf("got %+v, %v, want %+v", got, err, item)
	}
}

func testUpdateRace(e *env) {
	const writers, each = 8, 20
	e.create("a", "red")
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				_, err := e.s.Update(e.ctx, key("a"), func(cur *storage.Item) (storage.Draft, error) {
					return storage.Draft{Value: append(bytes.Clone(cur.Value()), '+')}, nil
				})
				if err != nil {
					e.Errorf("update: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got, err := e.s.Get(e.ctx, key("a"), 0)
	if err != nil {
		e.Fatal(err)
	}
	if bytes.Count(got.Value(), []byte("+")) != writers*each {
		e.Fatalf("%d updates left %q", writers*each, got.Value())
	}
}

func testUpdateError(e *env) {
	item := e.create("a", "red")
	want := errors.New("no")
	_, err := e.s.Update(e.ctx, key("a"), func(*storage.Item) (storage.Draft, error) { return storage.Draft{}, want })
	if err != want {
		e.Fatalf("error %v, want it as it is", err)
	}
	if got, err := e.s.Get(e.ctx, key("a"), 0); err != nil || got.Revision != item.Revision {
		e.Fatalf("got %+v, %v", got, err)
	}
}

func testUpdateUnchanged(e *env) {
	item := e.create("a", "red")
	got, err := e.s.Update(e.ctx, key("a"), func(cur *storage.Item) (storage.Draft, error) {
		return storage.Draft{Value: bytes.Clone(cur.Value())}, nil
	})
	if err != nil || got.Revision != item.Revision {
		e.Fatalf("updated to %+v, %v, want the current item", got, err)
	}
	if now, err := e.s.Get(e.ctx, key("a"), 0); err != nil || now.Revision != item.Revision {
		e.Fatalf("an update without a change wrote: %+v, %v", now, err)
	}
}

// testAskedOnce: a change that fails or changes nothing is asked once where nobody else wrote, from a cache too: it may
// call webhooks.
func testAskedOnce(e *env) {
	e.create("a", "red")
	e.list(Prefix, storage.ListOptions{}) // a cache has it now
	for name, ask := range map[string]func(asked *int) error{
		"unchanged": func(asked *int) error {
			_, err := e.s.Update(e.ctx, key("a"), func(cur *storage.Item) (storage.Draft, error) {
				*asked++
				return storage.Draft{Value: bytes.Clone(cur.Value())}, nil
			})
			return err
		},
		"refused": func(asked *int) error {
			refused := errors.New("no")
			if _, err := e.s.Update(e.ctx, key("a"), func(*storage.Item) (storage.Draft, error) {
				*asked++
				return storage.Draft{}, refused
			}); err != refused {
				return fmt.Errorf("error %v, want it as it is", err)
			}
			return nil
		},
		"a refused deletion": func(asked *int) error {
			refused := errors.New("no")
			if _, err := e.s.Delete(e.ctx, key("a"), func(*storage.Item) error {
				*asked++
				return refused
			}); err != refused {
				return fmt.Errorf("error %v, want it as it is", err)
			}
			return nil
		},
	} {
		asked := 0
		if err := ask(&asked); err != nil || asked != 1 {
			e.Errorf("%s: asked %d times, %v", name, asked, err)
		}
	}
}

// testStaleChange: a change that was decided on an old item is asked again.
func testStaleChange(e *env) {
	e.create("a", "red")
	for range 30 {
		want := e.update("a", "blue")
		enough := errors.New("old")
		_, err := e.s.Update(e.ctx, key("a"), func(cur *storage.Item) (storage.Draft, error) {
			if cur.Revision < want.Revision {
				return storage.Draft{}, enough
			}
			return draft("green"), nil
		})
		if err != nil {
			e.Fatalf("update failed on an old item: %v", err)
		}
	}
}

func testDelete(e *env) {
	_, err := e.s.Delete(e.ctx, key("a"), func(*storage.Item) error { return nil })
	e.wantErr(err, storage.ErrNotFound)
	item := e.create("a", "red")
	gone := e.delete("a")
	if gone.Revision <= item.Revision || !bytes.Equal(gone.Value(), item.Value()) || !red(gone) {
		e.Fatalf("deleted %+v, was %+v", gone, item)
	}
	_, err = e.s.Get(e.ctx, key("a"), 0)
	e.wantErr(err, storage.ErrNotFound)
}

func testDeleteCheck(e *env) {
	e.create("a", "red")
	want := errors.New("no")
	if _, err := e.s.Delete(e.ctx, key("a"), func(*storage.Item) error { return want }); err != want {
		e.Fatalf("error %v, want it as it is", err)
	}
	newest := e.update("a", "blue")
	_, err := e.s.Delete(e.ctx, key("a"), func(cur *storage.Item) error {
		if cur.Revision != newest.Revision {
			return want
		}
		return nil
	})
	if err != nil {
		e.Fatalf("delete was not asked again with the newest item: %v", err)
	}
}

func testDeleteCreate(e *env) {
	for i := range 10 {
		e.create("a", fmt.Sprint("c", i))
		e.delete("a")
	}
	last := e.create("a", "red")
	if got, err := e.s.Get(e.ctx, key("a"), 0); err != nil || got.Revision != last.Revision {
		e.Fatalf("got %+v, %v, want %+v", got, err, last)
	}
}

func testRevision(e *env) {
	last := e.revision()
	for i := range 10 {
		item := e.create(fmt.Sprint(i), "red")
		r := e.revision()
		if r < item.Revision || r <= last {
			e.Fatalf("revision %d after writing %d, before it was %d", r, item.Revision, last)
		}
		last = r
	}
}

func testFacts(e *env) {
	facts, _ := Facts([]byte("given;x"))
	d := draft("read")
	d.Facts = &facts
	item, err := e.s.Create(e.ctx, key("a"), d)
	if err != nil || item.Facts.Labels().Get("color") != "given" {
		e.Fatalf("created %+v, %v, want the writer's facts", item, err)
	}
	if item := e.create("b", "blue"); item.Facts.Labels().Get("color") != "blue" {
		e.Fatalf("created %+v, want the facts of its value", item)
	}
}

func testTTL(e *env) {
	d := draft("red")
	d.TTL = time.Second
	item, err := e.s.Create(e.ctx, key("a"), d)
	if err != nil {
		e.Fatal(err)
	}
	kept := e.create("b", "red")
	w := e.watch(storage.WatchOptions{Revision: kept.Revision})
	ev := w.next()
	if ev.Type != storage.Deleted || ev.Item.Key != item.Key || ev.Item.Revision <= kept.Revision {
		e.Fatalf("event %v %+v, want the deletion of %+v", ev.Type, ev.Item, item)
	}
	_, err = e.s.Get(e.ctx, key("a"), 0)
	e.wantErr(err, storage.ErrNotFound)
	e.wantNames(e.list(Prefix, storage.ListOptions{Match: storage.Latest}), "b")
}

func testContext(e *env) {
	e.create("a", "red")
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	_, err := e.s.Get(ctx, key("a"), 0)
	e.wantErr(err, context.Canceled)
	_, err = e.s.List(ctx, Prefix, storage.ListOptions{Match: storage.Latest})
	e.wantErr(err, context.Canceled)
	_, err = e.s.Create(ctx, key("b"), draft("red"))
	e.wantErr(err, context.Canceled)
	_, err = e.s.Revision(ctx)
	e.wantErr(err, context.Canceled)
}

// testEncodings: an encoding is made once and kept.
func testEncodings(e *env) {
	item := e.create("a", "red")
	calls := 0
	var form storage.Form
	for range 3 {
		b, err := item.Encoded(&form, storage.WhileAsked, func(*storage.Item) (storage.Bytes, error) {
			calls++
			return storage.Whole([]byte("{}")), nil
		})
		if err != nil || string(b.Flat()) != "{}" {
			e.Fatalf("encoded %q, %v", b.Flat(), err)
		}
	}
	if calls != 1 {
		e.Fatalf("encoded %d times", calls)
	}
}
