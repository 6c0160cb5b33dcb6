package etcd_test

import (
	"errors"
	"strings"
	"testing"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/apiserver/storage/etcdtest"
	"bonsai/pkg/apiserver/storage/storagetest"
)

func newStore(t testing.TB, server *etcdtest.Server, prefix string) *etcd.Store {
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

// What etcd refuses for its size, or its client before it, is known as such.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	s := newStore(t, etcdtest.Start(t), "/large")
	for _, size := range []int{1600 << 10, 3 << 20} {
		draft := storage.Draft{Value: make([]byte, size), Facts: &storage.Facts{}}
		if _, err := s.Create(t.Context(), "/registry/things/a", draft); !errors.Is(err, storage.ErrTooLarge) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	shared := etcdtest.Start(t)
	storagetest.Suite(t, func(t *testing.T) storage.Interface {
		server := shared
		// compacts, or counts revisions
		if strings.HasSuffix(t.Name(), "Expired") || strings.HasSuffix(t.Name(), "Future") {
			server = etcdtest.Start(t)
		}
		return newStore(t, server, "/"+t.Name())
	})
}
