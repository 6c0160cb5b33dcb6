package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	api "bonsai/api/traces"
	"bonsai/pkg/fairshare"
	"bonsai/pkg/traces"
)

const group1 = "/apis/traces.bonsai.io/v1alpha1"

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// fake has some traces; asked is the last query.
type fake struct {
	all   []api.Trace
	asked traces.Query
	// more are resources beside those of every test.
	more []schema.GroupResource
}

// Get implements Reader.
func (f *fake) Get(uid types.UID) (*api.Trace, bool) {
	for _, t := range f.all {
		if t.Object.UID == uid {
			t.Spans = []api.Span{{TraceID: "aa", ID: "bb", Name: "kubelet.sandbox", Start: t.CreationTimestamp.Time,
				Duration: time.Second}}
			return &t, true
		}
	}
	return nil, false
}

// Resources implements Reader.
func (f *fake) Resources(traces.Query) []schema.GroupResource {
	return append([]schema.GroupResource{{Resource: "pods"}, {Resource: "nodes"}}, f.more...)
}

// all may see everything.
func all(*http.Request, string, schema.GroupResource, string) (bool, error) { return true, nil }

// callerOf is the user of a request, as tests name it.
func callerOf(r *http.Request) string { return r.Header.Get("User") }

// List implements Reader.
func (f *fake) List(q traces.Query) (page traces.Page) {
	f.asked = q
	f.asked.Hidden = nil
	for _, t := range f.all {
		if q.Hidden[schema.GroupResource{Resource: t.Object.Resource}] {
			continue
		}
		if q.Cluster == (t.Namespace == "") && (q.Namespace == "" || q.Namespace == t.Namespace) {
			page.Traces = append(page.Traces, t)
		}
	}
	if len(page.Traces) > q.Limit {
		page.Traces, page.Remaining = page.Traces[:q.Limit], len(page.Traces)-q.Limit
	}
	return page
}

func trace(namespace, resource, kind, name string) api.Trace {
	return api.Trace{ObjectMeta: metav1.ObjectMeta{Name: "uid-" + name, Namespace: namespace,
		CreationTimestamp: metav1.NewTime(now.Add(-3 * time.Minute))},
		Object: api.Object{Resource: resource, Kind: kind, Namespace: namespace, Name: name,
			UID: types.UID("uid-" + name)},
		SpanCount: 3, LastSeen: now.Add(-3*time.Minute + 1234*time.Millisecond)}
}

func handler() (http.Handler, *fake) {
	f := &fake{all: []api.Trace{trace("a", "pods", "Pod", "web"), trace("b", "pods", "Pod", "db"),
		trace("", "nodes", "Node", "n1")}}
	mux := http.NewServeMux()
	for path, h := range New(f, all, callerOf, func() time.Time { return now }).Paths() {
		mux.Handle(path, h)
	}
	return mux, f
}

func do(h http.Handler, method, path string, accept ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Header["Accept"] = accept
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestAnswers: who asks for what is told what.
func TestAnswers(t *testing.T) {
	t.Parallel()
	h, _ := handler()
	const protobuf, table = "application/vnd.kubernetes.protobuf", "application/json;as=Table;v=v1;g=meta.k8s.io"
	for name, c := range map[string]struct {
		method, path, accept string
		code                 int
		body                 []string
	}{
		"all namespaces": {"GET", "/traces", "", 200, []string{`"kind":"TraceList"`, `"name":"uid-web"`, `"name":"uid-db"`,
			`"apiVersion":"traces.bonsai.io/v1alpha1"`}},
		"one namespace":       {"GET", "/namespaces/a/traces", "", 200, []string{`"items":[{"kind":"Trace",`, `"uid-web"`}},
		"an empty namespace":  {"GET", "/namespaces/c/traces", "", 200, []string{`"items":[]`}},
		"cluster":             {"GET", "/clustertraces", "", 200, []string{`"kind":"ClusterTraceList"`, `"kind":"ClusterTrace"`}},
		"get":                 {"GET", "/namespaces/a/traces/uid-web", "", 200, []string{`"kind":"Trace"`, `"spans":[{"traceID":"aa"`}},
		"get of the cluster":  {"GET", "/clustertraces/uid-n1", "", 200, []string{`"kind":"ClusterTrace"`}},
		"another namespace's": {"GET", "/namespaces/b/traces/uid-web", "", 404, []string{`traces.traces.bonsai.io \"uid-web\" not found`}},
		"namespaced as of the cluster": {"GET", "/clustertraces/uid-web", "", 404,
			[]string{`clustertraces.traces.bonsai.io \"uid-web\" not found`, `"kind":"Status"`, `"reason":"NotFound"`}},
		"none":               {"GET", "/namespaces/a/traces/x", "", 404, []string{`"code":404`}},
		"without namespace":  {"GET", "/traces/uid-web", "", 404, []string{`"kind":"Status"`}},
		"subresource":        {"GET", "/namespaces/a/traces/uid-web/status", "", 404, nil},
		"cluster, namespace": {"GET", "/namespaces/a/clustertraces", "", 404, nil},
		"other resource":     {"GET", "/namespaces/a/pods", "", 404, []string{"could not find the requested resource"}},
		"create":             {"POST", "/namespaces/a/traces", "", 405, []string{`"reason":"MethodNotAllowed"`, "create"}},
		"update":             {"PUT", "/namespaces/a/traces/uid-web", "", 405, nil},
		"patch":              {"PATCH", "/namespaces/a/traces/uid-web", "", 405, nil},
		"delete":             {"DELETE", "/namespaces/a/traces/uid-web", "", 405, nil},
		"watch":              {"GET", "/namespaces/a/traces?watch=true", "", 405, []string{"watch"}},
		"protobuf":           {"GET", "/namespaces/a/traces", protobuf, 406, []string{`"code":406`}},
		"protobuf or JSON":   {"GET", "/namespaces/a/traces", protobuf + ",application/json", 200, []string{`"TraceList"`}},
		"table": {"GET", "/namespaces/a/traces", table + ",application/json", 200, []string{`"kind":"Table"`,
			`"cells":["uid-web","Pod","pods/web",3,"1.23s","3m"]`, `"kind":"PartialObjectMetadata"`}},
		"table of one":           {"GET", "/namespaces/a/traces/uid-web", table, 200, []string{`"kind":"Table"`, `"uid-web"`}},
		"table with objects":     {"GET", "/traces?includeObject=Object", table, 200, []string{`"object":{"kind":"Trace"`}},
		"table without":          {"GET", "/traces?includeObject=None", table, 200, []string{`"object":null`}},
		"page":                   {"GET", "/traces?limit=1", "", 200, []string{`"continue":"eyJucyI6ImEi`, `"remainingItemCount":1`}},
		"slowest has no page":    {"GET", "/traces?limit=1&slowest=2", "", 200, []string{`"metadata":{}`}},
		"label selector":         {"GET", "/traces?labelSelector=a%3Db", "", 200, []string{`"items":[]`}},
		"other namespace":        {"GET", "/namespaces/a/traces?fieldSelector=metadata.namespace%3Db", "", 200, []string{`"items":[]`}},
		"bad field":              {"GET", "/traces?fieldSelector=spec.x%3Db", "", 400, []string{"field label not supported: spec.x"}},
		"bad operator":           {"GET", "/traces?fieldSelector=object.kind!%3DPod", "", 400, []string{"only = is supported"}},
		"bad since":              {"GET", "/traces?since=-1m", "", 400, []string{`since: \"-1m\" is no duration`}},
		"bad slowest":            {"GET", "/traces?slowest=100000", "", 400, []string{"from 1 to 1000"}},
		"bad limit":              {"GET", "/traces?limit=x", "", 400, []string{"limit"}},
		"bad token":              {"GET", "/traces?continue=x", "", 400, []string{"continue"}},
		"bad labels":             {"GET", "/traces?labelSelector=a%3D%3D%3D", "", 400, []string{"labelSelector"}},
		"token with the slowest": {"GET", "/traces?slowest=1&continue=e30", "", 400, []string{"no next page"}},
	} {
		w := do(h, c.method, group1+c.path, c.accept)
		if w.Code != c.code || w.Header().Get("Content-Type") != "application/json" || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		for _, part := range c.body {
			if !strings.Contains(w.Body.String(), part) {
				t.Errorf("%s: %s is not in %s", name, part, w.Body)
			}
		}
	}
}

// TestQuery: the parameters of a list arrive, and a token leads on from the last trace.
func TestQuery(t *testing.T) {
	t.Parallel()
	h, f := handler()
	do(h, "GET", group1+"/namespaces/a/traces?fieldSelector=object.kind%3DPod,object.resource%3Dpods,object.name%3Dweb,"+
		"object.uid%3Du,metadata.name%3Du&since=30m&slowest=7&limit=3")
	if want := (traces.Query{Namespace: "a", Kind: "Pod", Resource: "pods", Name: "web", UID: "u", Slowest: 7, Limit: 3,
		Since: now.Add(-30 * time.Minute).UnixNano()}); !reflect.DeepEqual(f.asked, want) {
		t.Errorf("%+v", f.asked)
	}
	var list api.TraceList
	if err := json.Unmarshal(do(h, "GET", group1+"/traces?limit=1").Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	do(h, "GET", group1+"/traces?continue="+list.Continue)
	want := traces.Query{Limit: maxPage, After: traces.Position{Namespace: "a", Name: "web", UID: "uid-web"}}
	if !reflect.DeepEqual(f.asked, want) {
		t.Errorf("%+v", f.asked)
	}
	do(h, "GET", group1+"/clustertraces")
	if !reflect.DeepEqual(f.asked, traces.Query{Cluster: true, Limit: maxPage}) {
		t.Errorf("%+v", f.asked)
	}
}

// TestHidden: who may not see an object sees no trace of it either.
func TestHidden(t *testing.T) {
	t.Parallel()
	f := &fake{all: []api.Trace{trace("a", "pods", "Pod", "web"), trace("", "nodes", "Node", "n1")}}
	var asked []string
	h := New(f, func(_ *http.Request, verb string, resource schema.GroupResource, namespace string) (bool, error) {
		asked = append(asked, verb+" "+resource.String()+" in "+namespace)
		if resource.Resource == "broken" {
			return false, errors.New("a secret of the cluster")
		}
		return resource.Resource == "nodes", nil
	}, callerOf, func() time.Time { return now })
	for path, want := range map[string]struct {
		code int
		body string
	}{
		"/namespaces/a/traces":         {200, `"items":[]`},
		"/traces":                      {200, `"items":[]`},
		"/namespaces/a/traces/uid-web": {403, "the trace is for those who may get pods"},
		"/clustertraces/uid-n1":        {200, `"n1"`},
	} {
		w := do(http.HandlerFunc(h.resource), "GET", group1+path)
		if w.Code != want.code || !strings.Contains(w.Body.String(), want.body) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	slices.Sort(asked)
	if want := []string{"get nodes in ", "get pods in a", "list nodes in ", "list nodes in a", "list pods in ",
		"list pods in a"}; !slices.Equal(asked, want) {
		t.Errorf("asked: %q", asked)
	}
	f.all[0].Object.Resource = "broken"
	if w := do(http.HandlerFunc(h.resource), "GET", group1+"/namespaces/a/traces/uid-web"); w.Code != 500 ||
		strings.Contains(w.Body.String(), "secret") {
		t.Error(w.Code, w.Body)
	}
}

// TestBusy checks that a caller must retry while all turns are taken, and that no single caller can take them all.
func TestBusy(t *testing.T) {
	t.Parallel()
	h := New(&fake{}, all, callerOf, func() time.Time { return now })
	var leaves []func()
	hold := func(caller string) {
		leave, ok := h.turns.Take(caller, func() {})
		if !ok {
			t.Fatalf("no turn for %q", caller)
		}
		leaves = append(leaves, leave)
	}
	code := func(user string) int {
		r := httptest.NewRequest("GET", group1+"/traces", nil)
		r.Header.Set("User", user)
		w := httptest.NewRecorder()
		h.resource(w, r)
		return w.Code
	}
	for range maxCallerTurns {
		hold("one")
	}
	if one, other := code("one"), code("other"); one != 429 || other != 200 {
		t.Errorf("beside a caller with its part: %d for it, %d for another", one, other)
	}
	for i := range maxTurns - maxCallerTurns {
		hold(fmt.Sprint("another ", i))
	}
	if got := code("other"); got != 429 {
		t.Errorf("while all turns are taken: %d", got)
	}
	for _, leave := range leaves {
		leave()
	}
	for range 2 * maxTurns { // each gives its turn back
		if got := code("one"); got != 200 {
			t.Errorf("while no turn is taken: %d", got)
		}
	}
}

// TestStalledReaders: callers that do not read lose their turns, over either protocol: after the patience, or for
// another caller as soon as all turns are taken. They kept them for a minute.
func TestStalledReaders(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{1, 2} {
		for name, patience := range map[string]time.Duration{"patience": time.Second, "share": time.Hour} {
			t.Run(fmt.Sprintf("%s, HTTP/%d", name, protocol), func(t *testing.T) {
				t.Parallel()
				const count, length = 1500, 4 << 10 // more than the kernel and the client take in advance
				f := &fake{}
				for i := range count {
					f.all = append(f.all, trace(strings.Repeat("a", length), "pods", "Pod", fmt.Sprint("web-", i)))
				}
				h := New(f, all, callerOf, func() time.Time { return now })
				h.patience = patience
				const turns = 3
				h.turns = fairshare.New[string](fairshare.Config{Most: turns, Part: turns - 1})
				ended := make(chan string, turns+1)
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					h.resource(w, r)
					ended <- r.Header.Get("User")
				}))
				server.EnableHTTP2 = protocol == 2
				server.StartTLS()
				t.Cleanup(server.Close)
				get := func(user string) *http.Response {
					r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+group1+"/traces", nil)
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("User", user)
					resp, err := server.Client().Do(r)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { resp.Body.Close() })
					if resp.ProtoMajor != protocol || resp.StatusCode != 200 {
						t.Fatalf("HTTP/%d, %s", resp.ProtoMajor, resp.Status)
					}
					return resp
				}
				for i := range turns {
					get(fmt.Sprint("stalled ", i%2)) // all turns, and nobody reads
				}
				if name == "patience" {
					for range turns {
						<-ended
					}
				}
				if n, err := io.Copy(io.Discard, get("reader").Body); err != nil || n < count*length {
					t.Errorf("the one who reads got %d bytes, %v", n, err)
				}
				if name == "share" {
					both := []string{<-ended, <-ended}
					slices.Sort(both)
					if !slices.Equal(both, []string{"reader", "stalled 0"}) {
						t.Errorf("%q ended", both)
					}
				}
			})
		}
	}
}

// TestAttributes: what RBAC is asked for each request.
func TestAttributes(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		"GET /namespaces/a/traces":                                     "list traces in a",
		"GET /namespaces/a/traces?fieldSelector=metadata.name%3Dx":     "list traces in a named x",
		"GET /namespaces/a/traces?watch=1":                             "watch traces in a",
		"GET /traces":                                                  "list traces",
		"GET /namespaces/a/traces/x":                                   "get traces in a named x",
		"HEAD /namespaces/a/traces/x":                                  "get traces in a named x",
		"GET /namespaces/a/traces/x/status/y":                          "get traces/status/y in a named x",
		"GET /clustertraces":                                           "list clustertraces",
		"GET /namespaces/a":                                            "get namespaces named a",
		"POST /namespaces/a/traces":                                    "create traces in a",
		"PUT /namespaces/a/traces/x":                                   "update traces in a named x",
		"PATCH /namespaces/a/traces/x":                                 "patch traces in a named x",
		"DELETE /namespaces/a/traces/x":                                "delete traces in a named x",
		"DELETE /namespaces/a/traces":                                  "deletecollection traces in a",
		"OPTIONS /namespaces/a/traces":                                 "options traces in a",
		"GET /namespaces/a/traces?fieldSelector=object.kind%3Dx%2C%21": "list traces in a",
	} {
		method, path, _ := strings.Cut(request, " ")
		a := Attributes(httptest.NewRequest(method, group1+path, nil))
		if a.Path != nil || a.Resource == nil {
			t.Errorf("%s: %+v", request, a)
			continue
		}
		r := a.Resource
		got := r.Verb + " " + r.Resource
		if r.Subresource != "" {
			got += "/" + r.Subresource
		}
		if r.Namespace != "" {
			got += " in " + r.Namespace
		}
		if r.Name != "" {
			got += " named " + r.Name
		}
		if got != want || r.Group != "traces.bonsai.io" || r.Version != "v1alpha1" {
			t.Errorf("%s: %s", request, got)
		}
	}
	for _, path := range []string{"/apis", "/apis/traces.bonsai.io", group1, group1 + "/", "/metrics"} {
		a := Attributes(httptest.NewRequest("GET", path, nil))
		if a.Resource != nil || a.Path.Path != path || a.Path.Verb != "get" {
			t.Errorf("%s: %+v", path, a)
		}
	}
}

// TestDiscovery: clients find the two resources in every way that they look, and the schemas have the fields of the
// types.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	h, _ := handler()
	for path, parts := range map[string][]string{
		"/apis":                           {`"kind":"APIGroupList"`, `"name":"traces.bonsai.io"`},
		"/apis/traces.bonsai.io":          {`"kind":"APIGroup"`, `"groupVersion":"traces.bonsai.io/v1alpha1"`},
		"/apis/traces.bonsai.io/v1alpha1": {`"kind":"APIResourceList"`, `"name":"traces"`, `"name":"clustertraces"`, `["get","list"]`},
		"/openapi/v3":                     {`"apis/traces.bonsai.io/v1alpha1":{"serverRelativeURL":"/openapi/v3/apis/traces.bonsai.io/v1alpha1?hash=`},
		"/openapi/v3/apis/traces.bonsai.io/v1alpha1": {`"x-kubernetes-group-version-kind"`},
	} {
		w := do(h, "GET", path, "application/json")
		for _, part := range parts {
			if w.Code != 200 || !strings.Contains(w.Body.String(), part) {
				t.Errorf("%s: %d, %s is not in %s", path, w.Code, part, w.Body)
			}
		}
	}
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	w := do(h, "GET", "/apis", aggregated+",application/json")
	if w.Header().Get("Content-Type") != aggregated || !strings.Contains(w.Body.String(), `"resource":"traces"`) {
		t.Error(w.Header(), w.Body)
	}
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(openapi, &document); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]any{"Trace": api.Trace{}, "ClusterTrace": api.Trace{}, "Span": api.Span{},
		"Object": api.Object{}, "Link": api.Link{}, "TraceList": api.TraceList{}} {
		var want, got []string
		for i := range reflect.TypeOf(of).NumField() {
			field, _, _ := strings.Cut(reflect.TypeOf(of).Field(i).Tag.Get("json"), ",")
			if field == "" {
				want = append(want, "apiVersion", "kind")
				continue
			}
			want = append(want, field)
		}
		for field := range document.Components.Schemas["io.bonsai.traces.v1alpha1."+name].Properties {
			got = append(got, field)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("%s has the fields %v, the schema %v", name, want, got)
		}
	}
}

// TestShort: durations in tables.
func TestShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "0s", 1234 * time.Nanosecond: "1µs", 1234567: "1ms",
		1234567 * time.Microsecond: "1.23s", 90 * time.Second: "90s", 3 * time.Hour: "3h"} {
		if got := short(d); got != want {
			t.Errorf("%d: %s, not %s", d, got, want)
		}
	}
}

// TestManyResources: spans that make up resources cost a bounded number of requests to the API server. What is beyond
// is for those who may list all.
func TestManyResources(t *testing.T) {
	t.Parallel()
	f := &fake{}
	for i := range 10_000 {
		f.more = append(f.more, schema.GroupResource{Resource: fmt.Sprintf("made-up-%d", i)})
	}
	last := f.more[len(f.more)-1]
	for _, admin := range []bool{false, true} {
		asked := 0
		h := New(f, func(_ *http.Request, _ string, of schema.GroupResource, _ string) (bool, error) {
			asked++
			return admin || of.Resource == "pods", nil
		}, callerOf, func() time.Time { return now })
		hidden, err := h.hidden(httptest.NewRequest(http.MethodGet, group1+"/traces", nil), traces.Query{}, "")
		if err != nil || asked > maxReviews+1 {
			t.Errorf("admin %v: %d questions, %v", admin, asked, err)
		}
		if hidden[schema.GroupResource{Resource: "pods"}] || hidden[last] == admin || len(hidden) != len(f.more)+2 {
			t.Errorf("admin %v: %d resources, the last one hidden: %v", admin, len(hidden), hidden[last])
		}
	}
}
