package rest_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/api/scheme"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/assemble/assembletest"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/rest"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

// replaces is a mutating plug-in that puts another object, a changed copy, in the place of each.
type replaces struct{ change func(metav1.Object) }

func (p *replaces) Admit(_ context.Context, a *admission.Attributes) error {
	if p.change == nil {
		return nil
	}
	obj := a.Object.DeepCopyObject()
	access, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	p.change(access)
	a.Object = obj
	return nil
}

func (p *replaces) Validate(context.Context, *admission.Attributes) error { return nil }

// evicts notes what it is asked to create.
type evicts struct{ got *policyv1.Eviction }

func (*evicts) New() runtime.Object { return &policyv1.Eviction{} }

func (e *evicts) Create(_ context.Context, _, _ string, obj runtime.Object, _ *metav1.CreateOptions) (runtime.Object,
	error) {
	e.got = obj.(*policyv1.Eviction)
	return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess},
		nil
}

// server answers requests for pods and leases over memory.
type server struct {
	*rest.API
	catalog *catalog.Catalog
	plugin  *replaces
	evict   *evicts
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{plugin: &replaces{}, evict: &evicts{}}
	facts := &storage.FactsTable{}
	backend := memory.New(facts)
	var err error
	if s.API, err = rest.New(
		rest.Config{Scheme: scheme.New(), Admission: s.plugin, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	if s.catalog, err = catalog.New(t.Context(), catalog.Config{Facts: facts}); err != nil {
		t.Fatal(err)
	}
	all := slices.DeleteFunc(rows.All(), func(r resources.Row) bool {
		return r.Resource != "pods" && r.Resource != "leases"
	})
	entries := assembletest.Entries(t, backend, all)
	for i := range entries {
		e := &entries[i]
		e.Handle = s.Handler
		if e.Store, err = registry.NewGeneric(
			registry.Config{Row: e.Row, Storage: backend, Admission: s.plugin}); err != nil {
			t.Fatal(err)
		}
		if e.Row.Resource == "pods" {
			e.Subresources["eviction"] = registry.Answerer{Creater: s.evict}
		}
	}
	if err := s.catalog.Add(entries...); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *server) info(r *http.Request) *request.Info {
	info := rest.InfoOf(r)
	info.Served = s.catalog.Snapshot()
	return info
}

// do makes a request and returns the code and the answer.
func (s *server) do(t *testing.T, method, url, media, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, url, strings.NewReader(body))
	r.Header.Set("Content-Type", media)
	r = r.WithContext(request.WithInfo(r.Context(), s.info(r)))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

const (
	podsURL = "/api/v1/namespaces/ns/pods"
	podBody = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	leases  = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/"
)

// writes are all ways to write an object. A pod named p is there for those that need one.
func writes() []struct{ name, method, url, media, body string } {
	lease := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l"},"spec":{}}`
	return []struct{ name, method, url, media, body string }{
		{"create", "POST", podsURL, asJSON, strings.Replace(podBody, `"p"`, `"q"`, 1)},
		{"create, dry run", "POST", podsURL + "?dryRun=All", asJSON, strings.Replace(podBody, `"p"`, `"q"`, 1)},
		{"update", "PUT", podsURL + "/p", asJSON, podBody},
		{"update, dry run", "PUT", podsURL + "/p?dryRun=All", asJSON, podBody},
		{"patch", "PATCH", podsURL + "/p", "application/merge-patch+json", `{"metadata":{"labels":{"a":"b"}}}`},
		{"patch, dry run", "PATCH", podsURL + "/p?dryRun=All", "application/merge-patch+json",
			`{"metadata":{"labels":{"a":"b"}}}`},
		{"status", "PUT", podsURL + "/p/status", asJSON, podBody},
		{"patch of status", "PATCH", podsURL + "/p/status", "application/merge-patch+json",
			`{"status":{"message":"m"}}`},
		{"update that creates", "PUT", leases + "l", asJSON, lease},
		{"update that creates, dry run", "PUT", leases + "l?dryRun=All", asJSON, lease},
	}
}

// TestReplaced: what admission puts in an object's place is what is stored and answered, with defaults for what it
// dropped.
func TestReplaced(t *testing.T) {
	t.Parallel()
	for _, w := range writes() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			if code, b := s.do(t, "POST", podsURL, asJSON, podBody); code != http.StatusCreated {
				t.Fatalf("%d %s", code, b)
			}
			s.plugin.change = func(m metav1.Object) {
				m.SetAnnotations(map[string]string{"replaced": "yes"})
				if pod, ok := m.(*corev1.Pod); ok {
					pod.Spec.DNSPolicy, pod.Spec.Containers[0].TerminationMessagePath = "", ""
				}
			}
			code, b := s.do(t, w.method, w.url, w.media, w.body)
			var got corev1.Pod
			if err := json.Unmarshal([]byte(b), &got); err != nil || code >= 300 {
				t.Fatalf("%d %s %v", code, b, err)
			}
			if got.Annotations["replaced"] != "yes" {
				t.Errorf("the object that admission left was not taken: %s", b)
			}
			if got.Kind == "Pod" && (got.Spec.DNSPolicy != corev1.DNSClusterFirst ||
				got.Spec.Containers[0].TerminationMessagePath != "/dev/termination-log") {
				t.Errorf("not defaulted again: %s", b)
			}
			if got.Kind != "Pod" || strings.Contains(w.name, "dry run") {
				return
			}
			if _, stored := s.do(t, "GET", podsURL+"/"+got.Name, "", ""); stored != b {
				t.Errorf("stored %s, answered %s", stored, b)
			}
		})
	}
}

// TestReplacedByAnother: what is another object than the request's is refused in upstream's words.
func TestReplacedByAnother(t *testing.T) {
	t.Parallel()
	const put = "the name of the object (other) does not match the name on the URL (l)"
	for _, c := range []struct {
		what   string
		change func(metav1.Object)
		want   map[string]string // by way of writing; "" for the others
	}{
		{"name", func(m metav1.Object) { m.SetName("other") }, map[string]string{
			"": "metadata.name: Invalid value: \"other\": field is immutable", "update that creates": put}},
		{"namespace", func(m metav1.Object) { m.SetNamespace("other") }, map[string]string{
			"": "the namespace of the provided object does not match the namespace sent on the request"}},
		{"uid", func(m metav1.Object) { m.SetUID("other") }, map[string]string{
			"": "metadata.uid: Invalid value: \"other\": field is immutable", "create": "-",
			"update that creates": "-"}},
		{"version", func(m metav1.Object) { m.SetResourceVersion("7777") }, map[string]string{
			"":                    "the object has been modified; please apply your changes to the latest version and try again",
			"create":              "resourceVersion should not be set on objects to be created",
			"update that creates": "resourceVersion should not be set on objects to be created",
			"create, dry run":     "-", "update that creates, dry run": "-"}}, // which do not look at it
		{"kind", func(m metav1.Object) {
			m.(runtime.Object).GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
		}, map[string]string{
			"": "by a /v1, Kind=Node"}},
	} {
		for _, w := range writes() {
			way, _, _ := strings.Cut(w.name, ", ")
			want, ok := c.want[w.name]
			if !ok {
				want, ok = c.want[way]
			}
			if !ok {
				want = c.want[""]
			}
			if want == "-" || c.what == "name" && way == "create" {
				continue
			}
			t.Run(c.what+" "+w.name, func(t *testing.T) {
				t.Parallel()
				s := newServer(t)
				if code, b := s.do(t, "POST", podsURL, asJSON, podBody); code != http.StatusCreated {
					t.Fatalf("%d %s", code, b)
				}
				s.plugin.change = c.change
				code, b := s.do(t, w.method, w.url, w.media, w.body)
				var status metav1.Status
				if err := json.Unmarshal([]byte(b), &status); err != nil || code < 400 ||
					!strings.Contains(status.Message, want) {
					t.Errorf("%d %s, want %q", code, b, want)
				}
			})
		}
	}
}

// TestReplacedRequest: a request that is answered without a store is answered for what admission left of it.
func TestReplacedRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	body := `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}`
	s.plugin.change = func(m metav1.Object) { m.SetLabels(map[string]string{"replaced": "yes"}) }
	if code, b := s.do(t, "POST", podsURL+"/p/eviction", asJSON, body); code != http.StatusCreated ||
		s.evict.got == nil || s.evict.got.Labels["replaced"] != "yes" {
		t.Errorf("%d %s, evicted %+v", code, b, s.evict.got)
	}
	s.plugin.change = func(m metav1.Object) { m.SetNamespace("other") }
	if code, b := s.do(t, "POST", podsURL+"/p/eviction", asJSON, body); code != http.StatusBadRequest {
		t.Errorf("%d %s", code, b)
	}
}
