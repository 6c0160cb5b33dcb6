package podresources

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// held gives each container a device of its own.
type held struct{}

func (held) Held(pod *corev1.Pod, container string) *podresourcesapi.ContainerResources {
	return &podresourcesapi.ContainerResources{Name: container,
		Devices: []*podresourcesapi.ContainerDevices{
			{ResourceName: "example.com/foo", DeviceIds: []string{string(pod.UID) + "-" + container}}}}
}

func (held) Holdings() *podresourcesapi.AllocatableResourcesResponse {
	return &podresourcesapi.AllocatableResourcesResponse{CpuIds: []int64{1, 2}}
}

// serve runs a server and connects to it.
func serve(t *testing.T, counted chan string) podresourcesapi.PodResourcesListerClient {
	t.Helper()
	dir, err := os.MkdirTemp("", "pr") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "p", Namespace: "ns"}, Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}},
		Containers:     []corev1.Container{{Name: "c"}}}}
	s := &Server{RootDir: dir, Resources: held{}, Pods: func() []*corev1.Pod { return []*corev1.Pod{pod} },
		Count: func(what string, failed bool) {
			if failed {
				what += " failed"
			}
			counted <- what
		}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	conn, err := grpc.NewClient("unix:"+filepath.Join(dir, "pod-resources", "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return podresourcesapi.NewPodResourcesListerClient(conn)
}

func TestServer(t *testing.T) {
	t.Parallel()
	counted := make(chan string, 8)
	c := serve(t, counted)
	list, err := c.List(t.Context(), &podresourcesapi.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range list.PodResources[0].Containers {
		names = append(names, c.Name+" "+c.Devices[0].DeviceIds[0])
	}
	if got := strings.Join(names, ", "); got != "sidecar u-sidecar, c u-c" || <-counted != "list" {
		t.Error(got)
	}
	one, err := c.Get(t.Context(), &podresourcesapi.GetPodResourcesRequest{PodName: "p", PodNamespace: "ns"})
	if err != nil || len(one.PodResources.Containers) != 2 || <-counted != "get" {
		t.Error(one, err)
	}
	if _, err := c.Get(t.Context(),
		&podresourcesapi.GetPodResourcesRequest{PodName: "p", PodNamespace: "other"}); status.Convert(err).Message() !=
		"pod p in namespace other not found" || <-counted != "get failed" {
		t.Error(err)
	}
	all, err := c.GetAllocatableResources(t.Context(), &podresourcesapi.AllocatableResourcesRequest{})
	if err != nil || len(all.CpuIds) != 2 || <-counted != "get_allocatable" {
		t.Error(all, err)
	}
}

// Who asks too often is told so.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	c := serve(t, make(chan string, 100_000))
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		_, err := c.GetAllocatableResources(t.Context(), &podresourcesapi.AllocatableResourcesRequest{})
		if status.Code(err) == codes.ResourceExhausted && status.Convert(err).Message() == "rejected by rate limit" {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Error("nobody is refused")
}
