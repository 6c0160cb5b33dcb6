package assemble_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/watchcache"
)

// anyone is known as an administrator, who may do everything.
type anyone struct{}

func (anyone) Authenticate(*http.Request) (*request.User, error) {
	return &request.User{Name: "admin"}, nil
}

func (anyone) Authorize(context.Context, authz.Attributes) (authz.Decision, string, error) {
	return authz.Allow, "", nil
}

// house is a server over a cache over memory that serves nothing at first.
type house struct {
	*assemble.Server
	catalog *catalog.Catalog
	facts   *storage.FactsTable
	backend *memory.Storage
	handler http.Handler
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{facts: &storage.FactsTable{}}
	log := slog.New(slog.DiscardHandler)
	h.backend = memory.New(h.facts)
	cache, err := watchcache.New(context.WithoutCancel(t.Context()), h.backend,
		watchcache.Config{Facts: h.facts, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close() })
	if h.catalog, err = catalog.New(t.Context(), catalog.Config{Facts: h.facts, Forget: cache.Forget}); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	h.Server, err = assemble.New(
		assemble.Config{Catalog: h.catalog, Storage: cache,
			Parts: assemble.Parts{Authenticator: anyone{}, Authorizer: anyone{}},
			HTTP: apiserver.Config{Listener: listener, TLS: &tls.Config{}, Metrics: prometheus.NewRegistry(),
				Version: version.Info{GitVersion: "v1.36.0"}, Log: log}})
	if err != nil {
		t.Fatal(err)
	}
	h.handler = h.Server
	return h
}

// settle waits until the cache has heard of everything, and then lets the memory behind it forget the past and what was
// made of its items: unlike etcd, it keeps the items that it shares with the cache.
func (h *house) settle(t *testing.T) {
	t.Helper()
	if code, body := h.get(t, "/apis/example.com/v1/others"); code != 200 { // a consistent read
		t.Fatalf("%d %s", code, body)
	}
	l, err := h.backend.List(t.Context(), "/registry/", storage.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range l.Items {
		item.DropEncodings()
	}
	if err := h.backend.Compact(t.Context(), l.Revision); err != nil {
		t.Fatal(err)
	}
}

// add serves a row.
func (h *house) add(t *testing.T, row *resources.Row) {
	t.Helper()
	e, err := h.Entry(row, assemble.Behaviour{})
	if err == nil {
		err = h.catalog.Add(e)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ask makes one request with a JSON body.
func (h *house) ask(ctx context.Context, w http.ResponseWriter, method, path, accept, body string) {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("Accept", accept)
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	h.handler.ServeHTTP(w, r)
}

func (h *house) get(t *testing.T, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ask(t.Context(), w, http.MethodGet, path, "application/json", "")
	return w.Code, w.Body.String()
}

// text is what mark keeps in memory.
type text struct{ of [1 << 10]byte }

// widgets is a custom resource in two versions: what v1, which is stored, has as spec.text is spec.content in v2. Its
// row refers to mark, so that mark lives as long as anything that was made of the row.
func widgets(mark *text) *resources.Row {
	rename := func(from, to, version string) func(context.Context, apiruntime.Object) (apiruntime.Object, error) {
		return func(_ context.Context, obj apiruntime.Object) (apiruntime.Object, error) {
			u := obj.(*unstructured.Unstructured)
			if in, ok := u.Object["spec"].(map[string]any); ok {
				if v, ok := in[from]; ok {
					in[to] = v
					delete(in, from)
				}
			}
			u.SetAPIVersion("example.com/" + version)
			return u, nil
		}
	}
	prune := func(known string) func(apiruntime.Object) ([]string, error) {
		return func(obj apiruntime.Object) (unknown []string, err error) {
			in, _ := obj.(*unstructured.Unstructured).Object["spec"].(map[string]any)
			for name := range in {
				if name != known {
					unknown = append(unknown, "spec."+name)
					delete(in, name)
				}
			}
			return unknown, nil
		}
	}
	own := func(name string) func() (*spec.Schema, error) {
		in := spec.MapProperty(nil)
		in.AdditionalProperties = nil
		in.SetProperty(name, *spec.StringProperty())
		in.Properties[name] = spec.Schema{
			SchemaProps: spec.SchemaProps{Type: []string{"string"}, Nullable: true,
				Description: "What it says in " + name + "."}}
		return func() (*spec.Schema, error) {
			return &spec.Schema{SchemaProps: spec.SchemaProps{Description: "A widget.", Type: []string{"object"},
				Properties: map[string]spec.Schema{"spec": *in}}}, nil
		}
	}
	return &resources.Row{
		GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, Resource: "widgets",
		Singular: "widget", ListKind: "WidgetCollection",
		Namespaced: true, StoragePath: "example.com/widgets",
		New: func() apiruntime.Object { return &unstructured.Unstructured{} },
		Versions: []resources.Version{
			{Name: "v2", ToHub: rename("content", "text", "v1"), FromHub: rename("text", "content", "v2"),
				Schema: own("content"), Prune: prune("content"),
				Default: func(obj apiruntime.Object) {
					u := obj.(*unstructured.Unstructured)
					if _, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "content"); !ok {
						_ = unstructured.SetNestedField(u.Object, "nothing", "spec", "content")
					}
				}, FieldNames: map[string]string{"spec.content": "spec.text"}},
			{Name: "v1", Schema: own("text"), Prune: prune("text")},
		},
		FieldNames: []string{"spec.text"},
		Fields: func(obj apiruntime.Object) fields.Set {
			v, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "spec", "text")
			return fields.Set{"spec.text": v + string(mark.of[:0])}
		},
	}
}

// A resource without a Go type is written and read in both of its versions; its schema stands in the documents.
func TestDynamicResource(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.add(t, widgets(&text{}))
	const v1, v2 = "/apis/example.com/v1/namespaces/ns/widgets", "/apis/example.com/v2/namespaces/ns/widgets"
	for _, c := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"POST", v2, `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"a"}}`, 201,
			`"spec":{"content":"nothing"}}`},
		{"GET", v1 + "/a", "", 200, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{`},
		{"GET", v1 + "/a", "", 200, `"spec":{"text":"nothing"}}`},
		{"POST", v1, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"b"},"spec":{"text":"x","more":1}}`, 201, `"spec":{"text":"x"}}`},
		{"POST", v1 + "?fieldValidation=Strict",
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"c","shape":1},"spec":{"more":1}}`, 400,
			`strict decoding error: unknown field \"metadata.shape\", unknown field \"spec.more\"`},
		{"POST", v1, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"c","labels":{"a":5}}}`, 400,
			"cannot unmarshal number into Go struct field ObjectMeta.labels of type string"},
		{"GET", v2, "", 200, `{"kind":"WidgetCollection","apiVersion":"example.com/v2"`},
		{"GET", v2 + "?fieldSelector=spec.content%3Dx", "", 200,
			`"items":[{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"creationTimestamp"`},
		{"PATCH", v2 + "/b", `{"spec":{"content":"y"}}`, 200, `"spec":{"content":"y"}}`},
		{"PUT", v1 + "/b", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"b"},"spec":{"text":"z"}}`, 200, `"spec":{"text":"z"}}`},
		{"DELETE", v2 + "/a", "", 200, `"status":"Success"`},
	} {
		w := httptest.NewRecorder()
		h.ask(t.Context(), w, c.method, c.path, "application/json", c.body)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s, want %s", c.method, c.path, w.Code, w.Body, c.want)
		}
	}
	if _, body := h.get(t, "/apis/example.com"); !strings.Contains(body,
		`"preferredVersion":{"groupVersion":"example.com/v2"`) {
		t.Errorf("the group is %s", body)
	}
	for path, want := range map[string][]string{
		"/openapi/v3/apis/example.com/v2": {`"com.example.v2.Widget":{"description":"A widget."`,
			`"com.example.v2.WidgetCollection":{`, `"nullable":true`, `"description":"What it says in content."`,
			`"allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]`},
		"/openapi/v2": {`"com.example.v1.Widget":{`, `"com.example.v2.Widget":{`,
			`{"description":"What it says in text."}`, `"operationId":"listExampleComV1WidgetForAllNamespaces"`},
	} {
		code, body := h.get(t, path)
		for _, w := range want {
			if code != 200 || !strings.Contains(body, w) {
				t.Errorf("%s: %d, %s is not in %s", path, code, w, body)
			}
		}
		if strings.Contains(body, "strategic") {
			t.Errorf("%s offers strategic merge patches", path)
		}
	}
}

// client is one of many that use a resource while it comes and goes.
type client struct {
	*house
	t       *testing.T
	rng     *rand.Rand
	done    *atomic.Int64 // requests with success
	open    *atomic.Int64 // watches that have begun
	watched *atomic.Int64 // events seen
}

// answer takes an answer and judges it. A watch may take long, everything else is there in time.
type answer struct {
	*client
	what   string
	stream bool
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	a.code = code
	if a.stream && code == http.StatusOK {
		a.open.Add(1)
	}
}

func (a *answer) Write(b []byte) (int, error) {
	if a.stream && bytes.Contains(b, []byte(`"type":"ERROR"`)) {
		a.t.Errorf("%s: %s", a.what, b)
	}
	if a.stream {
		a.watched.Add(int64(bytes.Count(b, []byte("\n"))))
		return len(b), nil
	}
	return a.body.Write(b)
}

func (a *answer) Flush() {}

func (c *client) do(ctx context.Context, method, path, accept, body string) {
	a := &answer{client: c, what: method + " " + path, stream: strings.Contains(path, "watch="), header: http.Header{}}
	c.ask(ctx, a, method, path, accept, body)
	if a.stream && a.code == http.StatusOK {
		a.open.Add(-1)
	}
	switch {
	case a.code < 300:
		c.done.Add(1)
	case a.code == 404 || a.code == 405 || a.code == 409:
	default:
		c.t.Errorf("%s: %d %s", a.what, a.code, a.body.String())
	}
}

// path is that of the resource in a version by chance.
func (c *client) path() (version, path string) {
	version = []string{"v1", "v2"}[c.rng.IntN(2)]
	return version, "/apis/example.com/" + version + "/namespaces/ns/widgets"
}

// form is one by chance of a list, or of one object and of a watch.
func (c *client) form(list bool) string {
	metadata := "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	if list {
		metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	}
	return []string{"application/json", "application/json;as=Table;g=meta.k8s.io;v=v1", metadata,
		"application/yaml,application/json"}[c.rng.IntN(4)]
}

func (c *client) watch(ctx context.Context) {
	_, path := c.path()
	c.do(ctx, http.MethodGet, path+"?watch=1", strings.TrimPrefix(c.form(false), "application/yaml,"), "")
}

func (c *client) list(ctx context.Context) {
	_, path := c.path()
	c.do(ctx, http.MethodGet,
		path+[]string{"", "?limit=3", "?resourceVersion=0", "?labelSelector=a%3Db"}[c.rng.IntN(4)], c.form(true), "")
}

func (c *client) write(ctx context.Context) {
	version, path := c.path()
	name := fmt.Sprint("w", c.rng.IntN(20))
	doc := fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"Widget","metadata":{"name":%q,"labels":{"a":"b"}},"spec":{"%s":"%d"}}`, version, name,
		map[string]string{"v1": "text", "v2": "content"}[version], c.rng.Int())
	switch c.rng.IntN(6) {
	case 0, 1:
		c.do(ctx, http.MethodPost, path, c.form(false), doc)
	case 2:
		c.do(ctx, http.MethodPut, path+"/"+name, c.form(false), doc)
	case 3:
		c.do(ctx, http.MethodPatch, path+"/"+name, c.form(false),
			fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, c.rng.Int()))
	case 4:
		c.do(ctx, http.MethodDelete, path+"/"+name, c.form(false), "")
	default:
		c.do(ctx, http.MethodGet, path+"/"+name, c.form(false), "")
	}
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			buf := make([]byte, 1<<20)
			t.Fatalf("%s does not come; goroutines:\n%s", what, buf[:runtime.Stack(buf, true)])
		}
	}
}

// A custom resource of two versions comes and goes while 50 clients list, watch and write it. Nobody gets a fault of
// the server, every watch ends when the resource goes, and nothing of it stays in memory: no goroutine, no cache, no
// facts.
func TestLivingCatalog(t *testing.T) {
	h := newHouse(t)
	others := widgets(&text{})
	others.Resource, others.StoragePath = "others", "example.com/others"
	h.add(t, others)
	idle := runtime.NumGoroutine()
	var done, open, watched atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients sync.WaitGroup
	for n := range 50 {
		c := &client{house: h, t: t, rng: rand.New(rand.NewPCG(1, uint64(n))), done: &done, open: &open,
			watched: &watched}
		act := []func(context.Context){c.watch, c.watch, c.list, c.write, c.write}[n%5]
		clients.Go(func() {
			for ctx.Err() == nil {
				act(context.WithoutCancel(ctx)) // watches end with the resource, not with the client
				runtime.Gosched()
			}
		})
	}
	var marks []weak.Pointer[text]
	for range 5 {
		mark := &text{}
		marks = append(marks, weak.Make(mark))
		row := widgets(mark)
		h.add(t, row)
		before, seen := done.Load(), watched.Load()
		until(t, "the use of the resource", func() bool {
			return open.Load() == 20 && done.Load() > before+200 && watched.Load() > seen+200
		})
		for _, path := range []string{"/apis/example.com/v1", "/openapi/v3/apis/example.com/v2"} {
			if code, body := h.get(t, path); code != 200 || !strings.Contains(body, "widgets") {
				t.Errorf("%s: %d %s", path, code, body)
			}
		}
		if err := h.catalog.Remove(row.GroupResource()); err != nil {
			t.Fatal(err)
		}
		until(t, "the end of the watches", func() bool { return open.Load() == 0 })
		for _, path := range []string{"/apis/example.com/v1", "/openapi/v3/apis/example.com/v2"} {
			if _, body := h.get(t, path); strings.Contains(body, "widgets") {
				t.Errorf("%s after: %s", path, body)
			}
		}
	}
	stop()
	clients.Wait()
	if prefix, _ := h.facts.Resource("/registry/example.com/widgets/"); prefix != "" {
		t.Errorf("the facts of %s are still known", prefix)
	}
	h.settle(t)
	until(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= idle })
	until(t, "the end of all that was made of the rows", func() bool {
		runtime.GC()
		for _, m := range marks {
			if m.Value() != nil {
				return false
			}
		}
		return true
	})
}
