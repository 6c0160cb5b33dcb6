package client

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

func newClient(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := New(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestBindPostsABindingAsProtobuf(t *testing.T) {
	t.Parallel()
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if want := "/api/v1/namespaces/ns/pods/p/binding"; r.Method != "POST" || r.URL.Path != want {
			t.Errorf("%s %s, want POST %s", r.Method, r.URL.Path, want)
		}
		u, b := runtime.Unknown{}, corev1.Binding{}
		if len(body) < 4 || string(body[:4]) != magic || u.Unmarshal(body[4:]) != nil || b.Unmarshal(u.Raw) != nil {
			t.Fatalf("body %q is no protobuf object", body)
		}
		if u.Kind != "Binding" || u.APIVersion != "v1" || b.Target.Kind != "Node" || b.Target.Name != "n" || b.UID != "u" {
			t.Errorf("posted %+v of %+v", b, u.TypeMeta)
		}
		w.WriteHeader(http.StatusCreated)
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}}
	if err := c.Bind(t.Context(), pod, "n"); err != nil {
		t.Fatal(err)
	}
}

func TestErrorsAreTheServersStatus(t *testing.T) {
	t.Parallel()
	c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		json.NewEncoder(w).Encode(metav1.Status{Status: "Failure", Reason: metav1.StatusReasonConflict, Code: 409, Message: "taken"})
	})
	if err := c.Bind(t.Context(), &corev1.Pod{}, "n"); !apierrors.IsConflict(err) {
		t.Errorf("Bind = %v, want a conflict", err)
	}
}

// TestMirrorFollows lists, watches, and after a broken watch lists again; the handler sees each change once.
func TestMirrorFollows(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	lists := make(chan []corev1.Node, 2)
	node := func(name, version, uid string) corev1.Node {
		return corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version, UID: "u"}, Spec: corev1.NodeSpec{ProviderID: uid}}
	}
	lists <- []corev1.Node{node("a", "1", "1"), node("b", "1", "1")}
	lists <- []corev1.Node{node("b", "5", "2"), node("c", "5", "1")}
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			json.NewEncoder(w).Encode(corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: <-lists})
			return
		}
		if len(lists) == 1 {
			json.NewEncoder(w).Encode(map[string]any{"type": "ERROR", "object": metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonExpired, Code: 410}})
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"type": "DELETED", "object": node("c", "6", "1")})
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	m := NewMirror(c, slog.New(slog.DiscardHandler), corev1.SchemeGroupVersion.WithResource("nodes"), &corev1.Node{}, &corev1.NodeList{}, "")
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
