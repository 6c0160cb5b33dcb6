package watchcache_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/apiserver/storage/etcdtest"
	"bonsai/pkg/apiserver/storage/storagetest"
	"bonsai/pkg/apiserver/storage/watchcache"
)

// reversed is a Transformer that turns values round. It knows "remote" values only after it was asked, when it answers.
type reversed struct {
	remote bool // seal so

	mu    sync.Mutex
	down  bool          // it answers with an error
	holds chan struct{} // not nil: it answers when this is closed
}

func (r *reversed) Seal(_ context.Context, _, value []byte) ([]byte, error) {
	how := "local:"
	if r.remote {
		how = "remote:"
	}
	return append([]byte(how), turn(value)...), nil
}

func turn(b []byte) []byte {
	out := bytes.Clone(b)
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

func (r *reversed) Open(ctx context.Context, _, stored []byte) ([]byte, bool, error) {
	how, value, ok := bytes.Cut(stored, []byte(":"))
	if !ok {
		return nil, false, errors.New("no matching prefix found")
	}
	if string(how) == "local" {
		return turn(value), r.remote, nil
	}
	r.mu.Lock()
	down, holds := r.down, r.holds
	r.mu.Unlock()
	if holds != nil {
		select {
		case <-holds:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
	if down {
		return nil, false, errors.New("nobody answers")
	}
	return turn(value), !r.remote, nil
}

func (r *reversed) AtHand(stored []byte) bool {
	return !bytes.HasPrefix(stored, []byte("remote:"))
}

func (r *reversed) set(down bool, holds chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down, r.holds = down, holds
}

// transformed returns a store and a cache before it, whose values are changed by r.
func transformed(t *testing.T, server *etcdtest.Server, prefix string, r *reversed) (*etcd.Store, *compactable) {
	t.Helper()
	s, err := etcd.New(t.Context(), etcd.Config{Endpoints: []string{server.Endpoint}, Prefix: prefix,
		Facts: storagetest.Table(), Transform: func(string) storage.Transformer { return r }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, newCache(t, s, watchcache.Config{Open: s.Open})
}

// TestTransformedContract: the cache keeps its contract over values that are changed on their way.
func TestTransformedContract(t *testing.T) {
	t.Parallel()
	for name, remote := range map[string]bool{"at hand": false, "remote": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared := etcdtest.Start(t)
			storagetest.Suite(t, func(t *testing.T) storage.Interface {
				server := shared
				// compacts, or counts revisions
				if strings.HasSuffix(t.Name(), "Expired") || strings.HasSuffix(t.Name(), "Future") {
					server = etcdtest.Start(t)
				}
				_, c := transformed(t, server, "/"+t.Name(), &reversed{remote: remote})
				return c
			})
		})
	}
}

// TestWaitsForNobody: while the changes of a resource wait to be opened, what is consistent says so or comes from the
// storage, and what other servers wrote is there when they are opened.
func TestWaitsForNobody(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	other, _ := transformed(t, server, "", &reversed{remote: true})
	mine := &reversed{}
	_, c := transformed(t, server, "", mine)
	listLatest(t, c)
	w, err := c.Watch(t.Context(), storagetest.Prefix, storage.WatchOptions{Revision: listLatest(t, c).Revision})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	open := make(chan struct{})
	mine.set(false, open)
	create(t, other, "a", "red;remote")
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if l, err := c.List(short, storagetest.Prefix, storage.ListOptions{Match: storage.Latest}); err == nil {
		t.Errorf("a list without the change that waits: %+v", l.Items)
	}
	close(open)
	item, err := c.Get(deadline(t), storagetest.Prefix+"a", 0)
	if err != nil || string(item.Value()) != "red;remote" {
		t.Fatalf("after it was opened: %v, %v", item, err)
	}
	events, err := w.Next(deadline(t))
	if err != nil || len(events) != 1 || string(events[0].Item.Value()) != "red;remote" ||
		events[0].Item.Facts.Labels().Get("color") != "red" {
		t.Errorf("watched %+v, %v", events, err)
	}
}

// TestSealed: a value that cannot be opened fails the reads that meet it, by its key and the reason, and never shows
// what is stored. When it can be opened, the cache has it.
func TestSealed(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	other, _ := transformed(t, server, "", &reversed{remote: true})
	mine := &reversed{}
	_, c := transformed(t, server, "", mine)
	create(t, c, "a/good", "red;x")
	listLatest(t, c)
	mine.set(true, nil)
	create(t, other, "b/bad", "red;y")
	ctx := deadline(t)
	bad := storagetest.Prefix + "b/bad"
	fails := func(what string, err error) {
		t.Helper()
		var corrupt *storage.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Key != bad || !strings.HasSuffix(err.Error(), "nobody answers") {
			t.Errorf("%s: %v, want the key and the reason", what, err)
		}
	}
	_, err := c.Get(ctx, bad, 0)
	fails("get", err)
	_, err = c.List(ctx, storagetest.Prefix, storage.ListOptions{Match: storage.Latest})
	fails("list", err)
	_, err = c.List(ctx, storagetest.Prefix, storage.ListOptions{Filter: func(*storage.Item) bool { return true }})
	fails("filtered list", err)
	fails("watch", watched(ctx, c, storagetest.Prefix))
	_, err = c.Update(ctx, bad, func(i *storage.Item) (storage.Draft, error) { return draft("red;z"), nil })
	fails("update", err)
	_, err = c.Delete(ctx, bad, func(i *storage.Item) error { return nil })
	fails("delete", err)
	if _, err := c.Get(ctx, storagetest.Prefix+"a/good", 0); err != nil {
		t.Errorf("get beside it: %v", err)
	}
	if l, err := c.List(ctx, storagetest.Prefix+"a/", storage.ListOptions{}); err != nil || len(l.Items) != 1 {
		t.Errorf("list beside it: %v", err)
	}
	mine.set(false, nil)
	for range 2 {
		if item, err := c.Get(ctx, bad, 0); err != nil || string(item.Value()) != "red;y" {
			t.Errorf("when it can be opened: %v, %v", item, err)
		}
	}
	if l := listLatest(t, c); len(l.Items) != 2 || !l.Items[1].Facts.Known() {
		t.Errorf("listed %+v", l.Items)
	}
}

// TestStale: an update that changes nothing writes a stale value once, also from a cached item.
func TestStale(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	_, c := transformed(t, server, "", &reversed{})
	create(t, c, "a", "red;x")
	now, rewriting := transformed(t, server, "", &reversed{remote: true})
	listLatest(t, rewriting)
	same := func(i *storage.Item) (storage.Draft, error) { return storage.Draft{Value: i.Value()}, nil }
	for name, s := range map[string]storage.Interface{"cache": rewriting, "store": now} {
		first, err := s.Update(deadline(t), storagetest.Prefix+"a", same)
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.Update(deadline(t), storagetest.Prefix+"a", same)
		if err != nil || again.Revision != first.Revision {
			t.Errorf("%s: the value was written again: %v, %v", name, again, err)
		}
		listLatest(t, rewriting)
		if item, err := c.Get(deadline(t), storagetest.Prefix+"a", 0); err != nil || item.Revision != first.Revision ||
			name == "cache" && item.Revision < 3 {
			t.Errorf("%s: at revision %v, %v", name, item, err)
		}
	}
}
