// Package podsapi serves the kubelet's pods API (KEP-4188), at a socket in the kubelet's directory: agents on the node
// read and watch its pods, with their newest statuses, without the API server.
package podsapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	dir := filepath.Join(s.RootDir, "pods-api")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the directory of the pods API: %w", err)
	}
	return s.Serve(ctx, filepath.Join(dir, "pods-api.sock"), func(g *grpc.Server) {
		podsv1alpha1.RegisterPodsServer(g, s)
	})
}

// counted counts a request by its error, which it returns.
func (s *Server) counted(what string, err error) error {
	s.Count(what, status.Code(err).String())
	return err
}

// unencoded is the error about a pod that cannot be written.
func unencoded(p *corev1.Pod, err error) error {
	return status.Errorf(codes.Internal, "encode pod %s/%s: %v", p.Namespace, p.Name, err)
}

// ListPods returns all pods.
func (s *Server) ListPods(context.Context, *podsv1alpha1.ListPodsRequest) (*podsv1alpha1.ListPodsResponse, error) {
	out := &podsv1alpha1.ListPodsResponse{}
	for _, p := range s.sorted() {
		data, err := p.Marshal()
		if err != nil {
			return nil, s.counted("list", unencoded(p, err))
		}
		out.Pods = append(out.Pods, data)
	}
	return out, s.counted("list", nil)
}

// GetPod returns the pod with a UID.
func (s *Server) GetPod(_ context.Context,
	q *podsv1alpha1.GetPodRequest) (*podsv1alpha1.GetPodResponse, error) {
	for _, p := range s.Pods() {
		if string(p.UID) != q.PodUID {
			continue
		}
		data, err := p.Marshal()
		if err != nil {
			return nil, s.counted("get", unencoded(p, err))
		}
		return &podsv1alpha1.GetPodResponse{Pod: data}, s.counted("get", nil)
	}
	return nil, s.counted("get", status.Errorf(codes.NotFound, "pod with UID %s not found", q.PodUID))
}

// WatchPods sends all pods, and then each change of them. A watcher that is slow gets several changes of a pod as one.
func (s *Server) WatchPods(_ *podsv1alpha1.WatchPodsRequest, to podsv1alpha1.Pods_WatchPodsServer) error {
	defer s.watches.Add(-1)
	if s.watches.Add(1) > maxWatches {
		return s.counted("watch", status.Errorf(codes.ResourceExhausted, "there are %d watches already", maxWatches))
	}
	changes, stop := s.Changes.Subscribe()
	defer stop()
	w := watch{to: to, sent: map[types.UID]sent{}}
	if err := w.round(s.sorted()); err != nil {
		return s.counted("watch", err)
	}
	if err := to.Send(&podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE}); err != nil {
		return s.counted("watch", err)
	}
	for {
		select {
		case <-to.Context().Done():
			return s.counted("watch", status.FromContextError(to.Context().Err()).Err())
		case <-changes:
			if err := w.round(s.sorted()); err != nil {
				return s.counted("watch", err)
			}
		}
	}
}

// sorted returns all pods by namespace and name.
func (s *Server) sorted() []*corev1.Pod {
	return slices.SortedFunc(slices.Values(s.Pods()), func(a, b *corev1.Pod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
}

// watch is what one watcher has been sent.
type watch struct {
	to   podsv1alpha1.Pods_WatchPodsServer
	sent map[types.UID]sent
}

// sent is a pod as it was sent last; sum stands for its content.
type sent struct {
	namespace, name string
	sum             [sha256.Size]byte
}

// round sends what differs from what was sent.
func (w *watch) round(pods []*corev1.Pod) error {
	is := map[types.UID]bool{}
	for _, p := range pods {
		is[p.UID] = true
		data, err := p.Marshal()
		if err != nil {
			return unencoded(p, err)
		}
		was, known := w.sent[p.UID]
		now := sent{p.Namespace, p.Name, sha256.Sum256(data)}
		kind := podsv1alpha1.EventType_ADDED
		if known {
			kind = podsv1alpha1.EventType_MODIFIED
		}
		if known && bytes.Equal(was.sum[:], now.sum[:]) {
			continue
		}
		w.sent[p.UID] = now
		if err := w.to.Send(&podsv1alpha1.WatchPodsEvent{Type: kind, Pod: data}); err != nil {
			return err
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(w.sent)) {
		if is[uid] {
			continue
		}
		gone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.sent[uid].namespace, Name: w.sent[uid].name,
			UID: uid}}
		delete(w.sent, uid)
		data, err := gone.Marshal()
		if err != nil {
			return unencoded(gone, err)
		}
		if err := w.to.Send(&podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_DELETED,
			Pod: data}); err != nil {
			return err
		}
	}
	return nil
}
