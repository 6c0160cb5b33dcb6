package watchcache_test

import (
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/apiserver/storage/etcdtest"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/storagetest"
	"bonsai/pkg/apiserver/storage/watchcache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend is what the tests put behind the cache.
type backend interface {
	watchcache.Backend
	storagetest.Compacter
}

// compactable is a cache whose backend can be compacted.
type compactable struct {
	*watchcache.Cache
	storagetest.Compacter
}

func newCache(t testing.TB, b backend, cfg watchcache.Config) *compactable {
	t.Helper()
	cfg.Facts = storagetest.Table()
	cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	c, err := watchcache.New(t.Context(), b, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return &compactable{c, b}
}

func newEtcd(t testing.TB, server *etcdtest.Server, prefix string) *etcd.Store {
	t.Helper()
	s, err := etcd.New(t.Context(),
		etcd.Config{Endpoints: []string{server.Endpoint}, Prefix: prefix, Facts: storagetest.Table()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestContractOverMemory(t *testing.T) {
	t.Parallel()
	storagetest.Suite(t, func(t *testing.T) storage.Interface {
		return newCache(t, memory.New(storagetest.Table()), watchcache.Config{})
	})
}

func TestContractOverEtcd(t *testing.T) {
	t.Parallel()
	shared := etcdtest.Start(t)
	storagetest.Suite(t, func(t *testing.T) storage.Interface {
		server := shared
		// compacts, or counts revisions
		if strings.HasSuffix(t.Name(), "Expired") || strings.HasSuffix(t.Name(), "Future") {
			server = etcdtest.Start(t)
		}
		return newCache(t, newEtcd(t, server, "/"+t.Name()), watchcache.Config{})
	})
}
