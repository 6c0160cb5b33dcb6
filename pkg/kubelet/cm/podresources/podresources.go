// Package podresources serves the pod-resources API, at a socket in the kubelet's directory: which devices, CPUs and
// memory the containers of the node have, for agents that watch these
// (https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/#monitoring-device-plugin-resources).
package podresources

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"bonsai/api/podspec"
	"bonsai/pkg/kubelet/cm"
)

// Resources know what containers have.
type Resources interface {
	Held(pod *corev1.Pod, container string) *podresourcesapi.ContainerResources
	Holdings() *podresourcesapi.AllocatableResourcesResponse
}

// Server answers. All fields are required.
type Server struct {
	podresourcesapi.UnimplementedPodResourcesListerServer
	// RootDir is the kubelet's: the socket is pod-resources/kubelet.sock there.
	RootDir   string
	Resources Resources
	// Pods are those whose containers may run.
	Pods func() []*corev1.Pod
	// Count counts a request (list, get, get_allocatable), and whether it failed.
	Count func(what string, failed bool)
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	dir := filepath.Join(s.RootDir, "pod-resources")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the directory of the pod-resources API: %w", err)
	}
	return cm.ServeLimited(ctx, filepath.Join(dir, "kubelet.sock"), func(g *grpc.Server) {
		podresourcesapi.RegisterPodResourcesListerServer(g, s)
	})
}

// List tells what all pods' containers have.
func (s *Server) List(context.Context,
	*podresourcesapi.ListPodResourcesRequest) (*podresourcesapi.ListPodResourcesResponse, error) {
	s.Count("list", false)
	out := &podresourcesapi.ListPodResourcesResponse{}
	for _, pod := range s.Pods() {
		out.PodResources = append(out.PodResources, s.of(pod))
	}
	return out, nil
}

// Get tells what one pod's containers have.
func (s *Server) Get(_ context.Context,
	q *podresourcesapi.GetPodResourcesRequest) (*podresourcesapi.GetPodResourcesResponse, error) {
	for _, pod := range s.Pods() {
		if pod.Name == q.PodName && pod.Namespace == q.PodNamespace {
			s.Count("get", false)
			return &podresourcesapi.GetPodResourcesResponse{PodResources: s.of(pod)}, nil
		}
	}
	s.Count("get", true)
	return nil, status.Errorf(codes.NotFound, "pod %s in namespace %s not found", q.PodName, q.PodNamespace)
}

// GetAllocatableResources tells what containers may have.
func (s *Server) GetAllocatableResources(context.Context,
	*podresourcesapi.AllocatableResourcesRequest) (*podresourcesapi.AllocatableResourcesResponse, error) {
	s.Count("get_allocatable", false)
	return s.Resources.Holdings(), nil
}

// of returns what those containers of a pod have that run at the same time.
func (s *Server) of(pod *corev1.Pod) *podresourcesapi.PodResources {
	out := &podresourcesapi.PodResources{Name: pod.Name, Namespace: pod.Namespace}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; podspec.IsSidecar(c) {
			out.Containers = append(out.Containers, s.Resources.Held(pod, c.Name))
		}
	}
	for i := range pod.Spec.Containers {
		out.Containers = append(out.Containers, s.Resources.Held(pod, pod.Spec.Containers[i].Name))
	}
	return out
}
