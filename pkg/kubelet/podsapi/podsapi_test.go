package podsapi

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/notify"
)

// node has the pods of a node.
type node struct {
	mu      sync.Mutex
	pods    map[string]corev1.PodPhase
	changes notify.Fan
	counted chan string
}

// put gives the node a pod in a phase; "" removes it.
func (n *node) put(name string, phase corev1.PodPhase) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pods[name] = phase; phase == "" {
		delete(n.pods, name)
	}
	n.changes.Notify()
}

func (n *node) list() (out []*corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, phase := range n.pods {
		out = append(out, &corev1.Pod{Status: corev1.PodStatus{Phase: phase},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}})
	}
	return out
}

// serve runs a server for a node and connects to it.
func serve(t *testing.T, n *node) podsv1alpha1.PodsClient {
	t.Helper()
	dir, err := os.MkdirTemp("", "pods") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n.counted = make(chan string, 100_000)
	s := &Server{RootDir: dir, Serve: cm.ServeLimited, Pods: n.list, Changes: &n.changes,
		Count: func(what, code string) { n.counted <- what + " " + code }}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient("unix://"+filepath.Join(dir, "pods-api", "pods-api.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return podsv1alpha1.NewPodsClient(conn)
}

// text shows a pod that was sent.
func text(t *testing.T, data []byte) string {
	t.Helper()
	p := &corev1.Pod{}
	if err := p.Unmarshal(data); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s/%s %s %s", p.Namespace, p.Name, p.UID, p.Status.Phase)
}

// TestReads: the list has all pods, and one is found by its UID; the error is that of a kubelet 1.37.2.
func TestReads(t *testing.T) {
	t.Parallel()
	n := &node{pods: map[string]corev1.PodPhase{"b": corev1.PodPending, "a": corev1.PodRunning}}
	client := serve(t, n)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	list, err := client.ListPods(ctx, &podsv1alpha1.ListPodsRequest{})
	if err != nil || len(list.Pods) != 2 || text(t, list.Pods[0]) != "ns/a uid-a Running" ||
		text(t, list.Pods[1]) != "ns/b uid-b Pending" {
		t.Fatal(list, err)
	}
	one, err := client.GetPod(ctx, &podsv1alpha1.GetPodRequest{PodUID: "uid-b"})
	if err != nil || text(t, one.Pod) != "ns/b uid-b Pending" {
		t.Error(one, err)
	}
	_, err = client.GetPod(ctx, &podsv1alpha1.GetPodRequest{PodUID: "none"})
	if err == nil || err.Error() != "rpc error: code = NotFound desc = pod with UID none not found" {
		t.Error(err)
	}
	for _, want := range []string{"list OK", "get OK", "get NotFound"} {
		if got := <-n.counted; got != want {
			t.Errorf("counted %s, want %s", got, want)
		}
	}
}

// TestWatch: a watch begins with all pods, says when they are all, and goes on with each change and nothing else.
func TestWatch(t *testing.T) {
	t.Parallel()
	n := &node{pods: map[string]corev1.PodPhase{"b": corev1.PodPending, "a": corev1.PodRunning}}
	client := serve(t, n)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := client.WatchPods(ctx, &podsv1alpha1.WatchPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want ...string) {
		t.Helper()
		for _, want := range want {
			e, err := w.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(e.Type.String() + " " + text(t, e.Pod)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
	expect("ADDED ns/a uid-a Running", "ADDED ns/b uid-b Pending", "INITIAL_SYNC_COMPLETE /")
	n.changes.Notify() // of nothing
	n.put("c", corev1.PodPending)
	expect("ADDED ns/c uid-c Pending")
	n.put("b", corev1.PodRunning)
	expect("MODIFIED ns/b uid-b Running")
	n.put("a", "")
	expect("DELETED ns/a uid-a")
	cancel()
	if got := <-n.counted; got != "watch Canceled" {
		t.Errorf("counted %s", got)
	}
}

// TestWatchesAreBounded: who opens more is refused, and room comes back with the end of one.
func TestWatchesAreBounded(t *testing.T) {
	t.Parallel()
	s := &Server{Count: func(string, string) {}}
	s.watches.Store(maxWatches)
	if err := s.WatchPods(nil, nil); err == nil || !strings.Contains(err.Error(), "ResourceExhausted") ||
		s.watches.Load() != maxWatches {
		t.Error(err, s.watches.Load())
	}
}

// TestRateLimit: a request beyond the limit is refused with an error that says so.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	n := &node{pods: map[string]corev1.PodPhase{}}
	client := serve(t, n)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		_, err := client.ListPods(t.Context(), &podsv1alpha1.ListPodsRequest{})
		if status.Code(err) == codes.ResourceExhausted && status.Convert(err).Message() == "rejected by rate limit" {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Error("nobody is refused")
}

// TestEncodedOnce: a pod is encoded when it has changed, and only then.
func TestEncodedOnce(t *testing.T) {
	t.Parallel()
	n := &node{pods: map[string]corev1.PodPhase{"a": corev1.PodRunning, "b": corev1.PodPending}}
	s := &Server{Pods: n.list, Changes: &n.changes}
	encode := func() []*encoded {
		t.Helper()
		all, err := s.encoded()
		if err != nil || len(all) != 2 || all[0].pod.Name != "a" || all[1].pod.Name != "b" {
			t.Fatal(all, err)
		}
		return all
	}
	first := encode()
	n.put("b", corev1.PodRunning)
	second := encode()
	if second[0] != first[0] {
		t.Error("a pod that is the same was encoded again")
	}
	if second[1] == first[1] || text(t, second[1].data) != "ns/b uid-b Running" {
		t.Errorf("a pod that has changed is %s", text(t, second[1].data))
	}
	if text(t, first[1].data) != "ns/b uid-b Pending" {
		t.Error("what a slow watcher still reads was changed")
	}
}

// TestNothingIsMissed: watches hear of a change that comes as soon as the server serves.
func TestNothingIsMissed(t *testing.T) {
	t.Parallel()
	n := &node{pods: map[string]corev1.PodPhase{}}
	s := &Server{RootDir: t.TempDir(), Pods: n.list, Changes: &n.changes}
	s.Serve = func(context.Context, string, func(*grpc.Server), ...grpc.ServerOption) error {
		renewed, stop := s.renewed.Subscribe()
		defer stop()
		n.put("a", corev1.PodRunning)
		select {
		case <-renewed:
		case <-time.After(10 * time.Second):
			t.Error("a watch does not hear of a pod")
		}
		return nil
	}
	if err := s.Run(t.Context()); err != nil {
		t.Error(err)
	}
}
