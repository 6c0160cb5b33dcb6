package assemble

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/version"

	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

// real is the configuration of a server with the parts of Kubernetes, over memory. changes are made to its options.
func real(t *testing.T, changes ...func(*Options)) Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sa.key")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
		0o600); err != nil {
		t.Fatal(err)
	}
	facts, log := &storage.FactsTable{}, slog.New(slog.DiscardHandler)
	cfg := Config{Storage: memory.New(facts), Rows: rows.All()}
	if cfg.Catalog, err = catalog.New(t.Context(), catalog.Config{Facts: facts}); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Authentication: Authentication{Issuers: []string{"https://issuer"}, SigningKey: file, AccountLookup: true},
		Authorization:  Authorization{Modes: []string{"Node", "RBAC"}}, EnableAdmission: []string{"NodeRestriction"},
		ServiceRanges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")},
		NodePorts:     utilnet.PortRange{Base: 30000, Size: 2768},
		Advertise:     netip.MustParseAddr("192.0.2.1"), Port: 6443, Hostname: "vm",
		Fairness: Fairness{Seats: 600, RequestTimeout: time.Minute},
	}
	for _, change := range changes {
		change(&o)
	}
	parts, err := NewParts(o, cfg.Catalog, cfg.Storage, cfg.Rows, log)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	cfg.Parts, cfg.Egress = *parts, o.Egress
	cfg.HTTP = apiserver.Config{Listener: listener, TLS: &tls.Config{}, Metrics: prometheus.NewRegistry(),
		Version: version.Info{GitVersion: "v1.36.0"}, Log: log}
	return cfg
}

// Everything that a row promises is answered for by the parts of Kubernetes, and nothing is served before they are all
// there.
func TestNew(t *testing.T) {
	t.Parallel()
	cfg := real(t)
	if n := len(cfg.Catalog.Snapshot().Resources()); n != 0 {
		t.Errorf("%d resources are served before the server is made", n)
	}
	if _, err := New(cfg); err != nil {
		t.Fatal(err)
	}
	if n := len(cfg.Catalog.Snapshot().Resources()); n != len(cfg.Rows) {
		t.Errorf("%d resources are served of %d", n, len(cfg.Rows))
	}
	// The plug-ins guard the stores from the first write on: there is no namespace yet.
	pods := cfg.Catalog.Store(schema.GroupResource{Resource: "pods"})
	_, err := pods.Create(t.Context(), "ns", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}},
		&metav1.CreateOptions{})
	if err == nil || err.Error() != `namespaces "ns" not found` {
		t.Errorf("a pod in no namespace: %v", err)
	}
}

// A subresource that nobody answers for, and a behaviour of nothing, are mistakes of who puts a server together.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	pods, nothing := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Resource: "nothings"}
	for want, change := range map[string]func(map[schema.GroupResource]Behaviour){
		`serve pods: nobody answers for its subresource "log"`: func(b map[schema.GroupResource]Behaviour) {
			delete(b[pods].Subresources, "log")
		},
		`serve pods: there is an answerer for "logs", which is no subresource of it`: func(
			b map[schema.GroupResource]Behaviour) {
			b[pods].Subresources["logs"] = registry.Answerer{}
		},
		"there is a behaviour of nothings, which no row describes": func(b map[schema.GroupResource]Behaviour) {
			b[nothing] = Behaviour{}
		},
	} {
		cfg := real(t)
		change(cfg.Parts.Behaviours)
		if _, err := New(cfg); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if len(cfg.Catalog.Snapshot().Resources()) != 0 {
			t.Error("something is served")
		}
	}
}

// A part that fails ends the server.
func TestRunEndsTogether(t *testing.T) {
	t.Parallel()
	cfg := real(t)
	cfg.Parts.Runs = append(cfg.Parts.Runs, func(context.Context) error { return os.ErrDeadlineExceeded })
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), os.ErrDeadlineExceeded.Error()) {
		t.Errorf("it ended with %v", err)
	}
}

// TestRunEndsInOrder: who comes to no end before the last request is answered, and the server is taken from its place
// while what it reads still works.
func TestRunEndsInOrder(t *testing.T) {
	t.Parallel()
	cfg := real(t)
	var beside context.Context
	left := make(chan bool, 1)
	started := make(chan struct{})
	cfg.Parts.Runs = append(cfg.Parts.Runs, func(ctx context.Context) error {
		beside = ctx
		close(started)
		<-ctx.Done()
		return nil
	})
	leave := cfg.Parts.Leave
	cfg.Parts.Leave = func(ctx context.Context) {
		leave(ctx)
		list, err := cfg.Storage.List(context.WithoutCancel(ctx), "/registry/masterleases/",
			storage.ListOptions{Match: storage.Latest})
		left <- err == nil && len(list.Items) == 0 && beside.Err() == nil
	}
	cfg.HTTP.ShutdownDelay = 200 * time.Millisecond
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-started
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !<-left {
		t.Error("the lease is still there, or what runs beside the server has ended before")
	}
	if beside.Err() == nil {
		t.Error("what runs beside the server goes on after it")
	}
}
