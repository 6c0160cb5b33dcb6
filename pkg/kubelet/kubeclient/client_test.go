package kubeclient

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	authnv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// server answers every request with the JSON that fits its path and notes what was asked.
type server struct {
	mu  sync.Mutex
	saw []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.saw = append(s.saw, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if r.Method == http.MethodPost && !strings.HasPrefix(string(body), "k8s\x00") {
		http.Error(w, "not protobuf", http.StatusUnsupportedMediaType)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.Contains(r.URL.Path, "missing"):
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	case strings.HasSuffix(r.URL.Path, "/pods"):
		io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"p"}}]}`)
	default:
		io.WriteString(w, `{"metadata":{"name":"got"},"status":{"token":"t","authenticated":true,"allowed":true}}`)
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	s := &server{}
	web := httptest.NewServer(s)
	defer web.Close()
	c, err := New(&rest.Config{Host: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: "ns"}}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "ns"}}
	for _, call := range []struct {
		want string
		do   func() error
	}{
		{"POST /api/v1/namespaces/ns/pods", func() error { return c.CreatePod(ctx, pod) }},
		{"DELETE /api/v1/namespaces/ns/pods/p",
			func() error { return c.DeletePod(ctx, "ns", "p", metav1.DeleteOptions{}) }},
		{"PATCH /api/v1/namespaces/ns/pods/p/status",
			func() error { return named(c.PatchPodStatus(ctx, "ns", "p", []byte("{}"))) }},
		{"GET /api/v1/namespaces/ns/configmaps/c", func() error { return named(c.ConfigMap(ctx, "ns", "c")) }},
		{"GET /api/v1/namespaces/ns/secrets/s", func() error { return named(c.Secret(ctx, "ns", "s")) }},
		{"GET /api/v1/nodes/n", func() error { return named(c.Node(ctx, "n")) }},
		{"POST /api/v1/nodes", func() error { return named(c.CreateNode(ctx, &corev1.Node{})) }},
		{"PATCH /api/v1/nodes/n", func() error {
			return named(c.PatchNode(ctx, "n", types.MergePatchType,
				[]byte("{}")))
		}},
		{"PATCH /api/v1/nodes/n/status", func() error {
			return named(c.PatchNode(ctx, "n", types.MergePatchType,
				[]byte("{}"), "status"))
		}},
		{"GET /apis/coordination.k8s.io/v1/namespaces/ns/leases/n",
			func() error { return named(c.Lease(ctx, "ns", "n")) }},
		{"POST /apis/coordination.k8s.io/v1/namespaces/ns/leases",
			func() error { return named(c.CreateLease(ctx, lease)) }},
		{"PUT /apis/coordination.k8s.io/v1/namespaces/ns/leases/n",
			func() error { return named(c.UpdateLease(ctx, lease)) }},
		{"POST /api/v1/namespaces/ns/serviceaccounts/sa/token",
			func() error { return named(c.CreateToken(ctx, "ns", "sa", &authnv1.TokenRequest{})) }},
		{"POST /api/v1/namespaces/ns/events", func() error { return named(c.Events(ctx).Create(event)) }},
		{"PUT /api/v1/namespaces/ns/events/e", func() error { return named(c.Events(ctx).Update(event)) }},
		{"PATCH /api/v1/namespaces/ns/events/e",
			func() error { return named(c.Events(ctx).Patch(event, []byte("{}"))) }},
	} {
		if err := call.do(); err != nil {
			t.Errorf("%s: %v", call.want, err)
		}
		s.mu.Lock()
		if got := s.saw[len(s.saw)-1]; got != call.want {
			t.Errorf("asked %q, not %q", got, call.want)
		}
		s.mu.Unlock()
	}
	if _, err := c.Node(ctx, "missing"); !apierrors.IsNotFound(err) {
		t.Errorf("a missing node gives %v", err)
	}
}

// named checks that an answer was decoded.
func named[T metav1.Object](got T, err error) error {
	if err == nil && got.GetName() != "got" {
		return io.ErrUnexpectedEOF
	}
	return err
}

func TestObjectsSelects(t *testing.T) {
	t.Parallel()
	s := &server{}
	web := httptest.NewServer(s)
	defer web.Close()
	c, err := New(&rest.Config{Host: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	lister, ok := c.Objects("pods", "", "spec.nodeName=n").(interface {
		ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error)
	})
	if !ok {
		t.Fatal("the lister takes no context")
	}
	list, err := lister.ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0", Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	if pods := list.(*corev1.PodList); len(pods.Items) != 1 || pods.ResourceVersion != "7" {
		t.Errorf("listed %v", list)
	}
	if want := "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn"; s.saw[0] != want {
		t.Errorf("asked %q, not %q", s.saw[0], want)
	}
}

// TestListWatches: the client knows the kinds, and their lists, of everything that it lists and watches.
func TestListWatches(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		parts := strings.Split(r.URL.Path, "/") // /apis/GROUP/VERSION/…
		kinds := map[string]string{"certificatesigningrequests": "CertificateSigningRequest", "csidrivers": "CSIDriver",
			"podcertificaterequests": "PodCertificateRequest", "clustertrustbundles": "ClusterTrustBundle",
			"runtimeclasses": "RuntimeClass"}
		kind := kinds[parts[len(parts)-1]]
		if kind == "" {
			http.Error(w, r.URL.Path, http.StatusNotFound)
			return
		}
		list := map[string]any{"kind": kind + "List", "apiVersion": parts[2] + "/" + parts[3],
			"items": []any{map[string]any{"metadata": map[string]any{"name": "x"}}}}
		if err := json.NewEncoder(w).Encode(list); err != nil {
			t.Error(err)
		}
	}))
	defer s.Close()
	c, err := New(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	for name, watched := range map[string]cache.ListerWatcher{
		"CertificateRequests":   c.CertificateRequests("x"),
		"PodCertificateRequest": c.PodCertificateRequest("n", "x", "node"),
		"TrustBundles":          c.TrustBundles(),
		"RuntimeClasses":        c.RuntimeClasses(),
		"WatchCSIDriver":        c.WatchCSIDriver("x"),
	} {
		list, err := cache.ToListerWatcherWithContext(watched).ListWithContext(t.Context(), metav1.ListOptions{})
		if err != nil || meta.LenList(list) != 1 {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
}
