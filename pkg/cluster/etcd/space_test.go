package etcd

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/cluster/host"
)

// TestDefragment: an etcd that is full says so, and takes writes again when what it does not use has been given back.
func TestDefragment(t *testing.T) {
	t.Parallel()
	binary := filepath.Join("..", "..", "bin", "etcd")
	if _, err := os.Stat(binary); err != nil {
		t.Skipf("SKIPPED: there is no etcd (make tools): %v", err)
	}
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return "http://" + l.Addr().String()
	}
	client, peer := free(), free()
	etcd := exec.CommandContext(t.Context(), binary, "--name=e", "--data-dir="+t.TempDir(),
		"--quota-backend-bytes=2097152", "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls="+client, "--advertise-client-urls="+client, "--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer, "--initial-cluster=e="+peer)
	if err := etcd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { etcd.Process.Kill(); etcd.Wait() }) //nolint:errcheck // it is killed
	e := API{name: "etcd", url: client, client: http.DefaultClient}
	if err := host.Poll(t.Context(), 20*time.Millisecond, func() (bool, error) {
		_, err := e.status(t.Context())
		return err == nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	value := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), 100<<10))
	put := func() error {
		return e.call(t.Context(), "/v3/kv/put",
			map[string]string{"key": base64.StdEncoding.EncodeToString([]byte("a")), "value": value}, nil)
	}
	var err error
	for range 100 {
		if err = put(); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "space exceeded") {
		t.Fatalf("it is not full: %v", err)
	}
	if s, err := e.status(t.Context()); err != nil || !s.isFull() {
		t.Errorf("full: %+v, %v", s, err)
	}
	var out strings.Builder
	if err := Defragment(t.Context(), []API{e}, &out); err != nil {
		t.Fatal(err)
	}
	if s, err := e.status(t.Context()); err != nil || s.isFull() || s.DBSize > 1<<20 {
		t.Errorf("afterwards: %+v, %v", s, err)
	}
	if !strings.Contains(out.String(), "MiB before, 0 MiB now") ||
		!strings.Contains(out.String(), "takes writes again") {
		t.Errorf("the user hears %q", fmt.Sprint(&out))
	}
	if err := put(); err != nil {
		t.Errorf("a write afterwards: %v", err)
	}
	if err := Defragment(t.Context(), []API{e}, &out); err != nil {
		t.Errorf("again: %v", err)
	}
}
