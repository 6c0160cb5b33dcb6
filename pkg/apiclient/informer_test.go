package apiclient

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestInformerFollows lists, watches, and after a broken watch lists again; the handler sees each change once.
func TestInformerFollows(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	lists := make(chan []corev1.Node, 2)
	node := func(name, version, uid string) corev1.Node {
		return corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version, UID: "u"},
			Spec:       corev1.NodeSpec{ProviderID: uid}}
	}
	lists <- []corev1.Node{node("a", "1", "1"), node("b", "1", "1")}
	lists <- []corev1.Node{node("b", "5", "2"), node("c", "5", "1")}
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			json.NewEncoder(w).Encode(
				corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"},
					ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: <-lists})
			return
		}
		if len(lists) == 1 {
			json.NewEncoder(w).Encode(
				map[string]any{"type": "ERROR",
					"object": metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
						Status: "Failure", Reason: metav1.StatusReasonExpired, Code: 410}})
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"type": "DELETED", "object": node("c", "6", "1")})
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	m := NewInformer(nodes(c), Selection{}, slog.New(slog.DiscardHandler))
	changes := make(chan string, 16)
	m.Changed = func(old, new *corev1.Node) {
		switch {
		case old == nil:
			changes <- "+" + new.Name
		case new == nil:
			changes <- "-" + old.Name
		default:
			changes <- "=" + new.Name
		}
	}
	done := make(chan struct{})
	go func() { m.Run(ctx); close(done) }()
	for _, want := range []string{"+a", "+b", "-a", "=b", "+c", "-c"} {
		select {
		case got := <-changes:
			if got != want {
				t.Fatalf("change %s, want %s", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no change, want %s", want)
		}
	}
	if !m.Synced() || m.Len() != 1 {
		t.Errorf("synced %v with %d nodes, want 1", m.Synced(), m.Len())
	}
	cancel()
	<-done
}

// TestInformerTellsPodsOfOneNameApart: a pod deleted and recreated between two looks is one that went and one that
// came.
func TestInformerTellsPodsOfOneNameApart(t *testing.T) {
	t.Parallel()
	m := NewInformer(pods(newClient(t, nil)), Selection{}, slog.New(slog.DiscardHandler))
	m.Slim = func(p *corev1.Pod) { p.Annotations = nil }
	var changes []string
	m.Changed = func(old, new *corev1.Pod) {
		text := func(p *corev1.Pod) string {
			if p == nil {
				return "-"
			}
			return string(p.UID) + p.ResourceVersion
		}
		changes = append(changes, text(old)+">"+text(new))
	}
	pod := func(uid, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: types.UID(uid),
			ResourceVersion: version, Annotations: map[string]string{"a": "b"}}}
	}
	other := pod("o", "1")
	other.Name = "q"
	m.Set(pod("a", "1"))
	m.Set(pod("a", "2"))
	m.Set(pod("b", "3"))
	m.Replace([]*corev1.Pod{pod("c", "4"), other})
	m.Delete(pod("c", "5"))
	m.Delete(pod("c", "6"))
	want := []string{"->a1", "a1>a2", "a2>-", "->b3", "b3>-", "->c4", "->o1", "c4>-"}
	if !slices.Equal(changes, want) {
		t.Errorf("changes %q, want %q", changes, want)
	}
	if _, ok := m.Get("ns/p"); ok || m.Len() != 1 || !m.Synced() {
		t.Errorf("%d pods, synced %v", m.Len(), m.Synced())
	}
	seen := 0
	m.Each(func(p *corev1.Pod) bool { seen++; return p.Annotations != nil })
	if q, ok := m.Get("ns/q"); !ok || q.Annotations != nil || seen != 1 {
		t.Errorf("the other pod is %+v, seen %d times", q, seen)
	}
}
