package apiclient

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	authnv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

func newClient(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return clientOf(t, &rest.Config{Host: srv.URL})
}

func clientOf(t *testing.T, config *rest.Config) *Client {
	t.Helper()
	s, err := NewScheme(corev1.AddToScheme, Only(authnv1.SchemeGroupVersion, &authnv1.TokenRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(config, s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pods(c *Client) *Resource[*corev1.Pod] {
	return NewResource(c, corev1.SchemeGroupVersion, "pods", &corev1.Pod{})
}

func nodes(c *Client) *Resource[*corev1.Node] {
	return NewResource(c, corev1.SchemeGroupVersion, "nodes", &corev1.Node{})
}

// server answers every request with the JSON that fits its path and notes what was asked and in which words.
type server struct {
	mu  sync.Mutex
	saw []http.Header
	log []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saw, s.log = append(s.saw, r.Header), append(s.log, r.Method+" "+r.URL.RequestURI())
	body, _ := io.ReadAll(r.Body)
	if len(body) > 0 && r.Method != http.MethodPatch && !strings.HasPrefix(string(body), magic) {
		http.Error(w, "not protobuf", http.StatusUnsupportedMediaType)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Warning", `299 - "what you do is old"`)
	switch {
	case strings.Contains(r.URL.Path, "missing"):
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(
			metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
				Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
	case strings.HasSuffix(r.URL.Path, "/pods") && r.Method == http.MethodGet:
		_, _ = io.WriteString(w,
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"got"}}]}`)
	default:
		_, _ = io.WriteString(w, `{"metadata":{"name":"got"},"status":{"token":"t"}}`)
	}
}

// TestRequests: every verb asks for the right path, in protobuf except for patches, under the component's name, and
// decodes the answer.
func TestRequests(t *testing.T) {
	t.Parallel()
	s := &server{}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	c := clientOf(t, &rest.Config{Host: web.URL + "/proxied", UserAgent: "kube-thing/v1"})
	ctx, pods, nodes := t.Context(), pods(c), nodes(c)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}}
	for _, call := range []struct {
		want string
		do   func() error
	}{
		{"GET /api/v1/namespaces/ns/pods/p", func() error { return named(pods.Get(ctx, "ns", "p")) }},
		{"GET /api/v1/nodes/n", func() error { return named(nodes.Get(ctx, "", "n")) }},
		{"POST /api/v1/namespaces/ns/pods", func() error { return named(pods.Create(ctx, pod)) }},
		{"PUT /api/v1/namespaces/ns/pods/p", func() error { return named(pods.Update(ctx, pod)) }},
		{"PUT /api/v1/namespaces/ns/pods/p/status", func() error { return named(pods.UpdateStatus(ctx, pod)) }},
		{"PATCH /api/v1/namespaces/ns/pods/p/status", func() error {
			return named(pods.Patch(ctx, "ns", "p", types.MergePatchType, []byte("{}"), "status"))
		}},
		{"PATCH /api/v1/nodes/n", func() error {
			return nodes.SendPatch(ctx, "", "n", types.MergePatchType, []byte("{}"))
		}},
		{"DELETE /api/v1/namespaces/ns/pods/p", func() error { return pods.Delete(ctx, "ns", "p", "u") }},
		{"POST /api/v1/namespaces/ns/pods/p/binding", func() error {
			return pods.Send(ctx, "ns", "p", "binding", "Binding", &corev1.Binding{})
		}},
		{"POST /api/v1/namespaces/ns/pods", func() error { return pods.Send(ctx, "ns", "", "", "Pod", pod) }},
		{"POST /api/v1/namespaces/ns/serviceaccounts/sa/token", func() error {
			out := &authnv1.TokenRequest{}
			accounts := NewResource(c, corev1.SchemeGroupVersion, "serviceaccounts", &corev1.ServiceAccount{})
			return named(out, accounts.CreateSub(ctx, "ns", "sa", "token", &authnv1.TokenRequest{}, out))
		}},
		{"GET /api/v1/namespaces/ns/pods?labelSelector=a%3Db", func() error {
			list, err := pods.List(ctx, "ns", metav1.ListOptions{LabelSelector: "a=b"})
			if err != nil || len(list) != 1 {
				t.Errorf("listed %v, %v", list, err)
			}
			return err
		}},
	} {
		if err := call.do(); err != nil {
			t.Errorf("%s: %v", call.want, err)
		}
		if got := s.log[len(s.log)-1]; got != strings.Replace(call.want, " ", " /proxied", 1) {
			t.Errorf("asked %q, not %q", got, call.want)
		}
		if h := s.saw[len(s.saw)-1]; h.Get("User-Agent") != "kube-thing/v1" {
			t.Errorf("%s: the component is called %q", call.want, h.Get("User-Agent"))
		}
	}
	if _, err := nodes.Get(ctx, "", "missing"); !apierrors.IsNotFound(err) {
		t.Errorf("a missing node gives %v", err)
	}
	if err := pods.Send(ctx, "ns", "missing", "binding", "Binding", &corev1.Binding{}); !apierrors.IsNotFound(err) {
		t.Errorf("a binding of a missing pod gives %v", err)
	}
}

// TestNamelessRequests: a request for one object without a name is not sent, as it would be one for all of them.
func TestNamelessRequests(t *testing.T) {
	t.Parallel()
	c := newClient(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the client sent %s %s", r.Method, r.URL)
	})
	ctx, pods, nodes := t.Context(), pods(c), nodes(c)
	for name, do := range map[string]func() error{
		"get":           func() error { _, err := pods.Get(ctx, "ns", ""); return err },
		"get a parent":  func() error { _, err := pods.Get(ctx, "ns", ".."); return err },
		"update":        func() error { _, err := nodes.Update(ctx, &corev1.Node{}); return err },
		"update status": func() error { _, err := nodes.UpdateStatus(ctx, &corev1.Node{}); return err },
		"patch": func() error {
			_, err := nodes.Patch(ctx, "", "", types.MergePatchType, []byte("{}"))
			return err
		},
		"send a patch":  func() error { return nodes.SendPatch(ctx, "", "", types.MergePatchType, []byte("{}")) },
		"apply":         func() error { _, err := nodes.Apply(ctx, "", "", "m", []byte("{}")); return err },
		"delete":        func() error { return nodes.Delete(ctx, "", "", "") },
		"delete in one": func() error { return pods.Delete(ctx, "ns", "", "") },
		"subresource": func() error {
			return pods.CreateSub(ctx, "ns", "", "binding", &corev1.Binding{}, &corev1.Binding{})
		},
		"send to a pod":  func() error { return pods.Send(ctx, "ns", "", "binding", "Binding", &corev1.Binding{}) },
		"send nowhere":   func() error { return pods.Send(ctx, "", "", "", "Pod", &corev1.Pod{}) },
		"send to itself": func() error { return pods.Send(ctx, "ns", "p", "", "Binding", &corev1.Binding{}) },
	} {
		if err := do(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// named checks that an answer was decoded.
func named[T metav1.Object](got T, err error) error {
	if err == nil && got.GetName() != "got" {
		return io.ErrUnexpectedEOF
	}
	return err
}

// TestNoLimitOfOurs: the configuration's own limits are client-go's default of 5 requests a second; a client has none.
func TestNoLimitOfOurs(t *testing.T) {
	t.Parallel()
	c := clientOf(t, &rest.Config{Host: "http://127.0.0.1:1"})
	g, err := c.group(corev1.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	if l := g.GetRateLimiter(); l != nil {
		t.Errorf("requests wait for %v", l)
	}
}

// TestSchemeIsLean: a scheme of some kinds knows those and what every request needs, and not the rest of their group.
func TestSchemeIsLean(t *testing.T) {
	t.Parallel()
	s, err := NewScheme(Only(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.NodeList{}))
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]bool{"Node": true, "NodeList": true, "Status": true, "ListOptions": true,
		"WatchEvent": true, "Pod": false} {
		if got := s.Recognizes(corev1.SchemeGroupVersion.WithKind(kind)); got != want {
			t.Errorf("%s: %v", kind, got)
		}
	}
	if !slices.Contains(s.PrioritizedVersionsAllGroups(), corev1.SchemeGroupVersion) {
		t.Error("v1 is not among the versions")
	}
}
