package apiserver_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	tracingapi "k8s.io/component-base/tracing/api/v1"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/traced"
	"bonsai/pkg/trace/export"
	"bonsai/pkg/trace/traceparent"
	"bonsai/pkg/trace/tracetest"
)

const (
	clientTrace  = "0af7651916cd43dd8448eb211c80319c"
	clientHeader = "00-" + clientTrace + "-b7ad6b7169203331-01"
)

// tracedServer runs a server that sends its spans to a collector. The returned function sends those that wait.
func tracedServer(t *testing.T, rate int32, to *tracetest.Collector) (url string, flush func()) {
	t.Helper()
	tracer, end, err := export.Open(t.Context(), export.Config{Component: "kube-apiserver",
		Tracing: &tracingapi.TracingConfiguration{Endpoint: &to.Endpoint, SamplingRatePerMillion: &rate},
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return start(t, func(c *assemble.Config) {
		c.HTTP.Tracer = tracer
		c.Storage = traced.Storage{Backend: c.Storage.(*memory.Storage)}
	}), end
}

// callAs makes a request as a user, "" for nobody, that asks to be recorded.
func callAs(t *testing.T, user, method, url, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(traceparent.Header, clientHeader)
	resp, err := plain(user).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// TestTrace: the story of an object begins in its own trace, which links to the request that made it and to its owner.
// Nothing is written on the object.
func TestTrace(t *testing.T) {
	t.Parallel()
	c := tracetest.NewCollector(t)
	url, _ := tracedServer(t, 1_000_000, c)
	const owner = "00112233-4455-4677-8899-aabbccddeeff"
	code, _, body := call(t, "POST", url+"/api/v1/namespaces/ns/configmaps?fieldManager=secret-query", `{"metadata":{"name":"a",
		"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"`+owner+`","controller":true}]},
		"data":{"password":"secret-body"}}`, traceparent.Header, clientHeader)
	var made metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(body), &made); code != 201 || err != nil || made.Annotations != nil {
		t.Fatalf("%d, %v: %s", code, err, body)
	}
	uid := string(made.UID)
	create := c.Await(t, "apiserver.create", func(r tracetest.Received) bool {
		return r.Name == "apiserver.create" && r.Attribute("bonsai.object.name") == "a"
	})
	if links := create.Relations(); create.TraceOf() != strings.ReplaceAll(uid, "-", "") ||
		links["request"] != clientTrace || links["owner"] != strings.ReplaceAll(owner, "-", "") ||
		create.Attribute("bonsai.object.resource") != "configmaps" || create.Attribute("bonsai.object.uid") != uid ||
		create.Attribute("bonsai.owner.kind") != "Deployment" {
		t.Errorf("create: %v, links %v", create.Span, links)
	}
	request := c.Await(t, "the request", func(r tracetest.Received) bool {
		return r.Name == "POST /api/v1/namespaces/{namespace}/configmaps"
	})
	if request.TraceOf() != clientTrace || request.Attribute("k8s.namespace.name") != "ns" ||
		request.Attribute("http.route") != "/api/v1/namespaces/{namespace}/configmaps" ||
		request.Attribute("http.request.method") != "POST" || request.Resource["service.name"] != "kube-apiserver" {
		t.Errorf("request: %v", request.Span)
	}
	steps := map[string]bool{}
	for _, s := range c.Spans() {
		if string(s.ParentSpanId) == string(request.SpanId) {
			steps[s.Name] = true
		}
		if text := s.String(); strings.Contains(text, "secret-") || strings.Contains(text, "admin") {
			t.Errorf("a span says too much: %s", text)
		}
	}
	for _, want := range []string{"authentication", "authorization", "etcd.create"} {
		if !steps[want] {
			t.Errorf("the request has no step %s, but %v", want, steps)
		}
	}
}

// TestTraceless: without a sampling rate only a client that is known, and asks for it, has its request recorded.
// Events, dry runs and objects beyond the rate have no story.
func TestTraceless(t *testing.T) {
	t.Parallel()
	c := tracetest.NewCollector(t)
	url, flush := tracedServer(t, 0, c)
	maps := url + "/api/v1/namespaces/ns/configmaps"
	call(t, "POST", maps, `{"metadata":{"name":"untraced"}}`)
	callAs(t, "", "GET", maps, "")
	call(t, "GET", maps+"/untraced", "", traceparent.Header, clientHeader)
	flush()
	var names []string
	for _, s := range c.Spans() {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	if want := []string{"GET /api/v1/namespaces/{namespace}/configmaps/{name}", "authentication", "authorization",
		"etcd.get"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// TestTraceOf: what tells of others, or was not stored, has no story. Refusals and unknown paths have spans whose names
// are no client's.
func TestTraceOf(t *testing.T) {
	t.Parallel()
	c := tracetest.NewCollector(t)
	url, flush := tracedServer(t, 1_000_000, c)
	for _, r := range []struct{ method, path, body, user string }{
		{"POST", "/api/v1/namespaces/ns/configmaps?dryRun=All", `{"metadata":{"name":"dry"}}`, "admin"},
		{"POST", "/api/v1/namespaces/ns/events",
			`{"metadata":{"name":"e","namespace":"ns"},"involvedObject":{"namespace":"ns"}}`, "admin"},
		{"GET", "/secret-path/x", "", "admin"},
		{"GET", "/openapi/v3", "", "admin"},
		{"GET", "/api/v1/namespaces/ns/pods/secret-path/log", "", "nobody"},
		{"GET", "/panic", "", "admin"},
		{"GET", "/version", "", ""},
	} {
		callAs(t, r.user, r.method, url+r.path, r.body)
	}
	flush()
	codes := map[string]int64{}
	for _, s := range c.Spans() {
		if s.Name == "apiserver.create" {
			t.Errorf("a story begins: %v", s.Span)
		}
		for _, a := range s.Attributes {
			if a.Key == "http.response.status_code" {
				codes[s.Name] = a.Value.GetIntValue()
			}
		}
	}
	for name, code := range map[string]int64{"POST /api/v1/namespaces/{namespace}/configmaps": 201,
		"POST /api/v1/namespaces/{namespace}/events": 201, "GET /{path}": 500, "GET /openapi/{path}": 200,
		"GET /api/v1/namespaces/{namespace}/pods/{name}/log": 403, "GET /version": 401} {
		if codes[name] != code {
			t.Errorf("%s: %d, want %d of %v", name, codes[name], code, codes)
		}
	}
}
