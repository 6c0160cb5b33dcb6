package etcd_test

import (
	"context"
	"errors"
	"net"
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

// TestDial: with a Dial, the store connects to etcd in no other way.
func TestDial(t *testing.T) {
	t.Parallel()
	server := strings.TrimPrefix(etcdtest.Start(t).Endpoint, "http://")
	s, err := etcd.New(t.Context(), etcd.Config{Endpoints: []string{"http://nowhere.invalid:2379"},
		Facts: storagetest.Table(),
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr != "nowhere.invalid:2379" {
				t.Errorf("dials %s", addr)
			}
			return (&net.Dialer{}).DialContext(ctx, network, server)
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Revision(t.Context()); err != nil {
		t.Error(err)
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
