package etcd_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/apiserver/storage/etcdtest"
	"bonsai/pkg/apiserver/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func rawClient(t *testing.T, server *etcdtest.Server) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestLayout: keys and values are in etcd as they were given, under the configured prefix.
func TestLayout(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	raw := rawClient(t, server)
	for prefix, want := range map[string]string{"": "/registry/things/ns/a", "other/": "/other/things/ns/a",
		"/x/y": "/x/y/things/ns/a"} {
		s := newStore(t, server, prefix)
		value := []byte("red;" + prefix)
		item, err := s.Create(t.Context(), "/registry/things/ns/a", storage.Draft{Value: value})
		if err != nil {
			t.Fatal(err)
		}
		got, err := raw.Get(t.Context(), want)
		if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != string(value) ||
			got.Kvs[0].ModRevision != item.Revision {
			t.Errorf("prefix %q: etcd holds %v at %s, %v", prefix, got, want, err)
		}
		l, err := s.List(t.Context(), storagetest.Prefix, storage.ListOptions{})
		if err != nil || len(l.Items) != 1 || l.Items[0].Key != "/registry/things/ns/a" {
			t.Errorf("prefix %q: listed %+v, %v", prefix, l, err)
		}
	}
}

// TestSharedLease: keys with one TTL written at about the same time share a lease, keys without have none, and an
// update without a TTL takes the lease away.
func TestSharedLease(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	s, raw := newStore(t, server, ""), rawClient(t, server)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if _, err := s.Create(t.Context(), fmt.Sprintf("/registry/things/%d", i),
				storage.Draft{Value: []byte("red;"), TTL: time.Hour}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := raw.Get(t.Context(), "/registry/things/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	leases := map[int64]int{}
	for _, kv := range got.Kvs {
		leases[kv.Lease]++
	}
	if len(leases) != 1 || leases[0] != 0 {
		t.Fatalf("50 keys have the leases %v, want one", leases)
	}
	for id := range leases {
		if ttl, err := raw.TimeToLive(t.Context(), clientv3.LeaseID(id)); err != nil || ttl.GrantedTTL != 3660 {
			t.Fatalf("lease %+v, %v, want an hour and a minute", ttl, err)
		}
		if _, err := raw.Revoke(t.Context(), clientv3.LeaseID(id)); err != nil {
			t.Fatal(err)
		}
	}
	// The revoked lease is replaced at the next write.
	if _, err := s.Create(t.Context(), "/registry/things/new",
		storage.Draft{Value: []byte("red;"), TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), "/registry/things/new", func(*storage.Item) (storage.Draft, error) {
		return storage.Draft{Value: []byte("red;kept")}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := raw.Get(t.Context(), "/registry/things/new"); err != nil || got.Kvs[0].Lease != 0 {
		t.Fatalf("after an update without TTL etcd holds %v, %v", got, err)
	}
}

// TestCompactors: several servers compact one etcd, each round once, and leave the last interval readable.
func TestCompactors(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	raw := rawClient(t, server)
	var stores []*etcd.Store
	for range 3 {
		stores = append(stores, newStore(t, server, ""))
	}
	first, err := stores[0].Create(t.Context(), "/registry/things/a", storage.Draft{Value: []byte("red;")})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stores {
		done := make(chan error, 1)
		go func() { done <- s.RunCompactor(t.Context(), 50*time.Millisecond) }()
		t.Cleanup(func() {
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		_, err := stores[1].List(t.Context(), "/registry/things/",
			storage.ListOptions{Match: storage.Exact, Revision: first.Revision})
		if errors.Is(err, storage.ErrExpired) {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("revision %d is not compacted: %v", first.Revision, err)
		}
	}
	got, err := raw.Get(t.Context(), "compact_rev_key")
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("etcd holds %v, %v", got, err)
	}
	noted, err := strconv.ParseInt(string(got.Kvs[0].Value), 10, 64)
	if err != nil || noted >= got.Kvs[0].ModRevision || noted < first.Revision {
		t.Fatalf("the noted revision is %q at %d", got.Kvs[0].Value, got.Kvs[0].ModRevision)
	}
	if _, err := stores[0].List(t.Context(), "/registry/things/",
		storage.ListOptions{Match: storage.Exact, Revision: got.Header.Revision}); err != nil {
		t.Fatalf("the newest revision is not readable: %v", err)
	}
}

// TestManyAnswers: lists longer than one answer of etcd are whole and of one revision, filtered or not, by page or not.
func TestManyAnswers(t *testing.T) {
	t.Parallel()
	s := newStore(t, etcdtest.Start(t), "")
	const n = 4500
	var wg sync.WaitGroup
	for part := range 16 {
		wg.Go(func() {
			for i := part; i < n; i += 16 {
				value := fmt.Appendf(nil, "%s;%d", []string{"red", "blue"}[i%2], i)
				if _, err := s.Create(t.Context(), fmt.Sprintf("/registry/things/%05d", i),
					storage.Draft{Value: value}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	red := func(i *storage.Item) bool { return i.Facts.Labels().Get("color") == "red" }
	for _, c := range []struct {
		opts      storage.ListOptions
		want      int
		remaining int64
	}{
		{storage.ListOptions{}, n, 0},
		{storage.ListOptions{Filter: red}, n / 2, 0},
		{storage.ListOptions{Limit: 4200}, 4200, 300},
		{storage.ListOptions{Limit: 100}, 100, 4400},
		{storage.ListOptions{Limit: 2100, Filter: red}, 2100, -1},
	} {
		l, err := s.List(t.Context(), "/registry/things/", c.opts)
		if err != nil || len(l.Items) != c.want || l.Remaining != c.remaining ||
			(l.Continue != "") != (c.remaining != 0) {
			t.Fatalf("%+v: %d items, %d remain, %v", c.opts, len(l.Items), l.Remaining, err)
		}
	}
	f, err := s.Fingerprint(t.Context(), "/registry/things/", 0)
	if err != nil || f.Count != n {
		t.Fatalf("fingerprint %+v, %v", f, err)
	}
}

// TestRestart: requests wait for an etcd that restarts.
func TestRestart(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	s := newStore(t, server, "")
	if _, err := s.Create(t.Context(), "/registry/things/a", storage.Draft{Value: []byte("red;")}); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	got := make(chan error, 1)
	go func() {
		_, err := s.Get(t.Context(), "/registry/things/a", 0)
		got <- err
	}()
	server.Run(t)
	if err := <-got; err != nil {
		t.Fatalf("a read over the restart: %v", err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if _, err := etcd.New(t.Context(), etcd.Config{}); err == nil {
		t.Fatal("a Store without endpoints was made")
	}
}
