package kubelet

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/cm/cpu"
	"bonsai/pkg/kubelet/cm/memory"
	"bonsai/pkg/kubelet/cm/userns"
	"bonsai/pkg/kubelet/cri"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/kubeclient"
	"bonsai/pkg/kubelet/node"
	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/sysctl"
)

// bareRuntime is a runtime without pods, which notifies listed of each list.
type bareRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	listed notify.Signal
}

func (r bareRuntime) ListPodSandbox(context.Context,
	*runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	r.listed.Notify()
	return &runtimeapi.ListPodSandboxResponse{}, nil
}

func (bareRuntime) ListContainers(context.Context,
	*runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	return &runtimeapi.ListContainersResponse{}, nil
}

func (bareRuntime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "bare", RuntimeVersion: "1"}, nil
}

// TestNewLeavesNothing: without an answer from the runtime, New fails and leaves no goroutine. It is not parallel,
// because goleak sees all goroutines of the process.
func TestNewLeavesNothing(t *testing.T) {
	client, err := kubeclient.New(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := sysctl.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	log, dir := slog.New(slog.DiscardHandler), t.TempDir()
	k, err := New(ctx, Config{NodeName: "n1", Client: client, RootDir: dir, Sysctls: allowed, Log: log,
		Cgroups: cgroup.Config{Log: log}, Runtime: cri.Config{Endpoint: filepath.Join(dir, "nobody.sock")}})
	if k != nil || !errors.Is(err, context.DeadlineExceeded) && status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v, %v, want no kubelet and an exceeded deadline", k, err)
	}
	goleak.VerifyNone(t, before)
}

// newBare returns a kubelet over a runtime without pods, and what is notified when the kubelet lists them. Its metrics
// are registered at r.
func newBare(t *testing.T, r prometheus.Registerer) (*Kubelet, notify.Signal) {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "cri.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	listed := notify.New()
	runtimeapi.RegisterRuntimeServiceServer(s, bareRuntime{listed: listed})
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	api := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(api.Close)
	client, err := kubeclient.New(&rest.Config{Host: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := sysctl.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	k, err := New(t.Context(), Config{NodeName: "n1", Client: client, RootDir: dir, LogMaxSize: 1 << 20, LogMaxFiles: 2,
		LogPeriod: time.Second,
		Runtime:   cri.Config{Endpoint: socket}, Cgroups: cgroup.Config{Log: log},
		Images: images.Config{Log: log}, Machine: cm.Machine{CPUs: []cm.CPU{{}}},
		CPUs:   cpu.Settings{Policy: cpu.None, Period: time.Second},
		Memory: memory.Settings{Policy: memory.None}, Users: userns.Ranges{First: 65536, Length: 65536, Count: 1},
		Sysctls: allowed, Metrics: r, Log: log,
		Node: node.Config{IPs: []net.IP{net.ParseIP("192.0.2.1")}, Machine: node.NewLinux(dir)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k, listed
}

// TestNew: all parts are there, answer before anything runs, then run, and end with their context.
func TestNew(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	k, listed := newBare(t, registry)
	names := map[string]bool{}
	for _, r := range k.runners {
		if r.run == nil || names[r.name] {
			t.Errorf("runner %q is no loop, or is there twice", r.name)
		}
		names[r.name] = true
	}
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
	if err := k.Healthy(); err == nil {
		t.Error("healthy before the runtime listed its pods")
	}
	if got := k.NodeIPs(); len(got) != 1 || got[0] != "192.0.2.1" {
		t.Errorf("addresses %v", got)
	}
	if why := k.signals.refuse(&corev1.Pod{}); why != nil {
		t.Errorf("a pod is refused: %+v", why)
	}
	if active := k.signals.active(); len(active) != 0 {
		t.Errorf("active pods: %v", active)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- runAll(ctx, k.runners) }()
	select {
	case <-listed:
	case err := <-done:
		t.Fatal("a loop ended:", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
