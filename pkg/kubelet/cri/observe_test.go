package cri

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The names are those of the label operation_type of kubelet_runtime_operations_total.
func TestOperation(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{
		"RuntimeService/Version": "version", "RuntimeService/RunPodSandbox": "run_podsandbox",
		"RuntimeService/ListPodSandbox":   "list_podsandbox",
		"RuntimeService/PodSandboxStatus": "podsandbox_status", "RuntimeService/ExecSync": "exec_sync",
		"RuntimeService/CreateContainer":     "create_container",
		"RuntimeService/ListContainerStats":  "list_container_stats",
		"RuntimeService/UpdateRuntimeConfig": "update_runtime_config",
		"ImageService/PullImage":             "pull_image", "ImageService/ImageFsInfo": "image_fs_info",
	} {
		if got := operation("/runtime.v1." + method); got != want {
			t.Errorf("%s: %s, want %s", method, got, want)
		}
	}
}

// fakeRuntime answers Version and refuses everything else.
type fakeRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
}

func (fakeRuntime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "fake"}, nil
}

// serve serves the runtime until the test ends and returns its socket.
func serve(t *testing.T, r runtimeapi.RuntimeServiceServer) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(s, r)
	go func() { _ = s.Serve(l) }() // until Stop
	t.Cleanup(s.Stop)
	return socket
}

func TestEveryCallIsObserved(t *testing.T) {
	t.Parallel()
	socket := serve(t, fakeRuntime{})
	var mu sync.Mutex
	var got []string
	c, err := Dial(t.Context(),
		Config{Endpoint: socket, Observe: func(operation string, took time.Duration, err error) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprint(operation, " ", err == nil, " ", took > 0))
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.RemoveContainer(t.Context(), "x"); err == nil {
		t.Error("the runtime does not remove containers")
	}
	if text := strings.Join(got, ", "); text != "version true true, status false true, remove_container false true" {
		t.Error(text)
	}
}
