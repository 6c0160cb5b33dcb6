// Package podsapi serves the kubelet's pods API (KEP-4188), at a socket in the kubelet's directory: agents on the node
// read and watch its pods, with their newest statuses, without the API server.
package podsapi

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"bonsai/pkg/kubelet/notify"
)

// maxWatches bounds the watches at a time.
const maxWatches = 64

// Server answers. The exported fields are required.
type Server struct {
	podsv1alpha1.UnimplementedPodsServer
	// RootDir is the kubelet's: the socket is pods-api/pods-api.sock there.
	RootDir string
	// Serve answers gRPC at a socket until ctx ends, within bounds.
	Serve func(ctx context.Context, path string, register func(*grpc.Server), o ...grpc.ServerOption) error
	// Pods are all pods of the node with their newest statuses.
	Pods func() []*corev1.Pod
	// Changes is notified when Pods returns something else than before.
	Changes *notify.Fan
	// Count counts a request (list, get, watch) when it ends, by its gRPC status.
	Count func(what, code string)

	watches atomic.Int32
	renewed notify.Fan // notified when latest may return something else

	mu   sync.Mutex // guards all below
	last []*encoded // by namespace and name; neither the list nor what it has is changed
	err  error      // why last is not complete
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	dir := filepath.Join(s.RootDir, "pods-api")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the directory of the pods API: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	changes, stop := s.Changes.Subscribe() // before the first watch, which hears of changes from follow alone
	defer stop()
	var following sync.WaitGroup
	following.Go(func() { s.follow(ctx, changes) })
	defer following.Wait()
	defer cancel()
	return s.Serve(ctx, filepath.Join(dir, "pods-api.sock"), func(g *grpc.Server) {
		podsv1alpha1.RegisterPodsServer(g, s)
	})
}

// counted counts a request by its error, which it returns.
func (s *Server) counted(what string, err error) error {
	s.Count(what, status.Code(err).String())
	return err
}

// ListPods returns all pods.
func (s *Server) ListPods(context.Context, *podsv1alpha1.ListPodsRequest) (*podsv1alpha1.ListPodsResponse, error) {
	pods, err := s.encoded()
	if err != nil {
		return nil, s.counted("list", err)
	}
	out := &podsv1alpha1.ListPodsResponse{}
	for _, p := range pods {
		out.Pods = append(out.Pods, p.data)
	}
	return out, s.counted("list", nil)
}

// GetPod returns the pod with a UID.
func (s *Server) GetPod(_ context.Context,
	q *podsv1alpha1.GetPodRequest) (*podsv1alpha1.GetPodResponse, error) {
	pods, err := s.encoded()
	if err != nil {
		return nil, s.counted("get", err)
	}
	i := slices.IndexFunc(pods, func(p *encoded) bool { return string(p.pod.UID) == q.PodUID })
	if i < 0 {
		return nil, s.counted("get", status.Errorf(codes.NotFound, "pod with UID %s not found", q.PodUID))
	}
	return &podsv1alpha1.GetPodResponse{Pod: pods[i].data}, s.counted("get", nil)
}

// WatchPods sends all pods, and then each change of them. A watcher that is slow gets several changes of a pod as one.
func (s *Server) WatchPods(_ *podsv1alpha1.WatchPodsRequest, to podsv1alpha1.Pods_WatchPodsServer) error {
	defer s.watches.Add(-1)
	if s.watches.Add(1) > maxWatches {
		return s.counted("watch", status.Errorf(codes.ResourceExhausted, "there are %d watches already", maxWatches))
	}
	renewed, stop := s.renewed.Subscribe()
	defer stop()
	w := watch{to: to, sent: map[types.UID]*encoded{}}
	pods, err := s.encoded()
	if err != nil {
		return s.counted("watch", err)
	}
	if err := w.round(pods); err != nil {
		return s.counted("watch", err)
	}
	if err := to.Send(&podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE}); err != nil {
		return s.counted("watch", err)
	}
	for {
		select {
		case <-to.Context().Done():
			return s.counted("watch", status.FromContextError(to.Context().Err()).Err())
		case <-renewed:
			pods, err := s.latest()
			if err != nil {
				return s.counted("watch", err)
			}
			if err := w.round(pods); err != nil {
				return s.counted("watch", err)
			}
		}
	}
}
