package podsapi

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/notify"
)

// encoded is a pod and its protobuf, for all who read it. A pod that changes gets another one.
type encoded struct {
	pod  *corev1.Pod
	data []byte
}

// follow encodes what changes, once for all watches, until ctx ends.
func (s *Server) follow(ctx context.Context, changes notify.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
			_, _ = s.encoded() // latest returns the error
			s.renewed.Notify()
		}
	}
}

// encoded returns all pods as they are now, by namespace and name.
func (s *Server) encoded() ([]*encoded, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.err = encodeAll(s.Pods(), s.last)
	return s.last, s.err
}

// latest returns what encoded returned last.
func (s *Server) latest() ([]*encoded, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.err
}

// encodeAll encodes the pods that differ from what they were before, and keeps the others. With an error, it returns
// those that can be encoded.
func encodeAll(pods []*corev1.Pod, before []*encoded) (all []*encoded, failed error) {
	known := make(map[types.UID]*encoded, len(before))
	for _, e := range before {
		known[e.pod.UID] = e
	}
	for _, p := range pods {
		was := known[p.UID]
		if was != nil && reflect.DeepEqual(was.pod, p) { // quick: most of it is the same memory
			all = append(all, was)
			continue
		}
		data, err := p.Marshal()
		switch {
		case err != nil:
			failed = unencoded(p, err)
		case was != nil && bytes.Equal(was.data, data):
			all = append(all, was)
		default:
			all = append(all, &encoded{p, data})
		}
	}
	slices.SortFunc(all, func(a, b *encoded) int {
		return strings.Compare(a.pod.Namespace+"/"+a.pod.Name, b.pod.Namespace+"/"+b.pod.Name)
	})
	return all, failed
}

// unencoded is the error about a pod that cannot be written.
func unencoded(p *corev1.Pod, err error) error {
	return status.Errorf(codes.Internal, "encode pod %s/%s: %v", p.Namespace, p.Name, err)
}
