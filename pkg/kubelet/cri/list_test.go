package cri

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/runtime"
)

func TestStateOf(t *testing.T) {
	t.Parallel()
	const exited, unknown = runtimeapi.ContainerState_CONTAINER_EXITED, runtimeapi.ContainerState_CONTAINER_UNKNOWN
	log := filepath.Join(t.TempDir(), "0.log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		status *runtimeapi.ContainerStatus
		want   runtime.State
	}{
		"ran and ended": {
			&runtimeapi.ContainerStatus{State: exited, CreatedAt: 1, StartedAt: 2, FinishedAt: 3}, runtime.StateExited},
		"could not be started": {
			&runtimeapi.ContainerStatus{State: exited, CreatedAt: 1, FinishedAt: 3, ExitCode: 128,
				Reason: "StartError"}, runtime.StateExited},
		"unknown, its making was cut off": {
			&runtimeapi.ContainerStatus{State: unknown, LogPath: log + "x", ExitCode: 255, Reason: "Unknown"},
			runtime.StateCreated},
		"unknown, it was started": {
			&runtimeapi.ContainerStatus{State: unknown, LogPath: log, ExitCode: 255, Reason: "Unknown"},
			runtime.StateUnknown},
		"unknown and stopped, it was started": {
			&runtimeapi.ContainerStatus{State: exited, LogPath: log, FinishedAt: 3, ExitCode: 255, Reason: "Unknown"},
			runtime.StateExited},
		"its making was cut off": {
			&runtimeapi.ContainerStatus{State: exited, FinishedAt: 3, ExitCode: 255, Reason: "Unknown"},
			runtime.StateCreated},
		"its start was cut off": {
			&runtimeapi.ContainerStatus{State: exited, CreatedAt: 1, FinishedAt: 3, ExitCode: 128, Reason: "StartError",
				LogPath: log,
				Message: "failed to create containerd task: failed to create shim task: context canceled: unknown"},
			runtime.StateCreated},
		"its start was cut off, but its task is there": {
			&runtimeapi.ContainerStatus{State: exited, CreatedAt: 1, FinishedAt: 3, ExitCode: 128, Reason: "StartError",
				LogPath: log,
				Message: "failed to create containerd task: failed to get task pid: context canceled: unknown"},
			runtime.StateCreated},
		"it may have run when its start was cut off": {
			&runtimeapi.ContainerStatus{State: exited, CreatedAt: 1, FinishedAt: 3, ExitCode: 128, Reason: "StartError",
				LogPath: log,
				Message: "failed to start containerd task: context canceled: unknown"}, runtime.StateExited},
		"made": {&runtimeapi.ContainerStatus{State: runtimeapi.ContainerState_CONTAINER_CREATED, CreatedAt: 1},
			runtime.StateCreated},
		"runs": {&runtimeapi.ContainerStatus{State: runtimeapi.ContainerState_CONTAINER_RUNNING, CreatedAt: 1,
			StartedAt: 2}, runtime.StateRunning},
	} {
		if got := stateOf(c.status); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if got, want := stuck(c.status), strings.Contains(name, "its task is there"); got != want {
			t.Errorf("%s: stuck %t", name, got)
		}
	}
}

// listing has two sandboxes of one pod.
type listing struct{ fakeRuntime }

func (listing) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse,
	error) {
	of := func(id, hash string, at int64) *runtimeapi.PodSandbox {
		return &runtimeapi.PodSandbox{Id: id, CreatedAt: at, Labels: map[string]string{labelPodUID: "u"},
			Annotations: map[string]string{runtime.AnnotationConfigHash: hash}, RuntimeHandler: "by-" + id}
	}
	return &runtimeapi.ListPodSandboxResponse{Items: []*runtimeapi.PodSandbox{of("new", "b", 2), of("old", "a", 1)}},
		nil
}

func (listing) ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse,
	error) {
	return &runtimeapi.ListContainersResponse{}, nil
}

// TestListedAnnotations: a pod is what its newest sandbox was made for.
func TestListedAnnotations(t *testing.T) {
	t.Parallel()
	c, err := Dial(t.Context(), Config{Endpoint: serve(t, listing{})})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pods, err := c.Pods(t.Context())
	if err != nil || len(pods) != 1 || pods[0].Annotations[runtime.AnnotationConfigHash] != "b" ||
		pods[0].Sandboxes[0].ID != "new" || pods[0].Sandboxes[0].Handler != "by-new" {
		t.Errorf("%+v, %v", pods, err)
	}
}

// TestNewestFirst: the attempt tells what is newer, also after the clock was put back.
func TestNewestFirst(t *testing.T) {
	t.Parallel()
	noon := time.Unix(43_200, 0)
	for _, c := range []struct {
		name           string
		attempt, other int
		created        time.Time
		first          bool
	}{
		{"a later attempt", 1, 0, noon.Add(time.Second), true},
		{"a later attempt, made by an earlier clock", 1, 0, noon.Add(-time.Hour), true},
		{"an earlier attempt", 0, 1, noon.Add(time.Hour), false},
		{"the same attempt, made later", 1, 1, noon.Add(time.Second), true},
	} {
		if got := newestFirst(c.attempt, c.other, c.created, noon) < 0; got != c.first {
			t.Errorf("%s: first %t", c.name, got)
		}
	}
}
