package watchcache_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/apiserver/storage/etcdtest"
	"bonsai/pkg/apiserver/storage/storagetest"
	"bonsai/pkg/apiserver/storage/watchcache"
)

// An object that cannot be read fails what must show it, by its key, and nothing else; so it does whether it came while
// the cache was there or before it was loaded.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	// knows of no facts, so it writes anything
	plain, err := etcd.New(t.Context(), etcd.Config{Endpoints: []string{server.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plain.Close() })
	running := newCache(t, newEtcd(t, server, ""), watchcache.Config{})
	create(t, running, "a/good", "red;x")
	listLatest(t, running)
	create(t, plain, "b/bad", "garbage")
	create(t, running, "b/good", "red;x")
	var log bytes.Buffer
	restarted, err := watchcache.New(t.Context(), newEtcd(t, server, ""),
		watchcache.Config{Facts: storagetest.Table(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]storage.Interface{"running": running, "restarted": restarted} {
		t.Run(name, func(t *testing.T) { testUnreadable(t, c) })
	}
	if err := restarted.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), storagetest.Prefix+"b/bad") {
		t.Errorf("the log does not tell of it: %s", log.String())
	}
}

func testUnreadable(t *testing.T, c storage.Interface) {
	ctx := deadline(t)
	if _, err := c.Get(ctx, storagetest.Prefix+"b/good", 0); err != nil {
		t.Errorf("get beside it: %v", err)
	}
	red := func(i *storage.Item) bool { return i.Facts.Labels().Get("color") == "red" }
	reads := func(prefix string) map[string]error {
		out := map[string]error{}
		for what, opts := range map[string]storage.ListOptions{
			"list": {Match: storage.Latest}, "cached list": {}, "chosen": {Filter: red}, "pages": {Limit: 2},
		} {
			_, out[what] = c.List(ctx, prefix, opts)
		}
		out["watch"] = watched(ctx, c, prefix)
		return out
	}
	for what, err := range reads(storagetest.Prefix + "a/") {
		if err != nil {
			t.Errorf("%s of what can be read: %v", what, err)
		}
	}
	for _, prefix := range []string{storagetest.Prefix, storagetest.Prefix + "b/"} {
		for what, err := range reads(prefix) {
			if err == nil || !strings.Contains(err.Error(), storagetest.Prefix+"b/bad") {
				t.Errorf("%s of %s: %v, want an error with the key", what, prefix, err)
			}
		}
	}
	if _, err := c.List(ctx, storagetest.Prefix, storage.ListOptions{Limit: 1}); err != nil {
		t.Errorf("a page that ends before it: %v", err)
	}
	if _, err := c.Get(ctx, storagetest.Prefix+"b/bad", 0); err == nil || !strings.Contains(err.Error(), "b/bad") {
		t.Errorf("get: %v, want an error with the key", err)
	}
}

// watched begins a watch with what is there.
func watched(ctx context.Context, c storage.Interface, prefix string) error {
	w, err := c.Watch(ctx, prefix, storage.WatchOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	_, err = w.Next(ctx)
	return err
}
