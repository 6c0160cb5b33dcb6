package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/request"
)

// Names that clients invent do not become labels.
func TestObserve(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := New(r, func(mutating bool) int {
		if mutating {
			return 2
		}
		return 1
	}, func(i *request.Info) bool { return i.Resource == "endpoints" })
	info := &request.Info{IsResource: true, Verb: "list", APIVersion: "v1", Resource: "pods", Parts: []string{"pods"}}
	ask := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	for range 2 {
		m.Observe(&Request{Info: info, Served: true, HTTP: ask, Code: 200, Took: time.Millisecond})
	}
	m.Observe(&Request{Info: &request.Info{IsResource: true, Verb: "get", Resource: "made-up"}, HTTP: ask, Code: 404})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range families {
		for _, s := range f.GetMetric() {
			all.WriteString(f.GetName() + " " + s.String() + "\n")
		}
	}
	got := all.String()
	if !strings.Contains(got, "apiserver_request_total") || !strings.Contains(got, `value:"pods"`) ||
		!strings.Contains(got, "counter:{value:2") {
		t.Errorf("two lists of pods are not counted:\n%s", got)
	}
	if strings.Contains(got, "made-up") {
		t.Errorf("a resource that is not served became a label:\n%s", got)
	}
	if n := strings.Count(got, "apiserver_current_inflight_requests"); n != 2 {
		t.Errorf("%d in-flight gauges", n)
	}
}

// TestLabels has the labels that a kube-apiserver v1.37.2 gave these requests.
func TestLabels(t *testing.T) {
	t.Parallel()
	pod := request.Info{IsResource: true, APIVersion: "v1", Resource: "pods", Namespace: "a", InNamespace: true,
		Name: "p", Parts: []string{"pods", "p"}}
	about := func(verb, subresource string) *request.Info {
		i := pod
		i.Verb, i.Subresource = verb, subresource
		return &i
	}
	many := func(verb, namespace string) *request.Info {
		return &request.Info{IsResource: true, Verb: verb, APIVersion: "v1", Resource: "pods", Namespace: namespace,
			Parts: []string{"pods"}}
	}
	const apply = "application/apply-patch+yaml"
	for _, c := range []struct {
		info              *request.Info
		query, body       string
		verb, scope, dryr string
	}{
		{info: about("get", ""), verb: "GET", scope: "resource"},
		{info: many("list", ""), verb: "LIST", scope: "cluster"},
		{info: many("watch", "a"), verb: "WATCH", scope: "namespace"},
		{info: many("create", "a"), verb: "POST", scope: "resource"},
		{info: about("update", "status"), verb: "PUT", scope: "resource"},
		{info: about("patch", ""), body: "application/merge-patch+json", query: "dryRun=All", verb: "PATCH",
			scope: "resource", dryr: "All"},
		{info: about("patch", ""), body: apply, verb: "APPLY", scope: "resource"},
		{info: about("delete", ""), query: "dryRun=x", verb: "DELETE", scope: "resource", dryr: "invalid"},
		{info: many("deletecollection", "a"), query: "dryRun=All", verb: "DELETE", scope: "namespace", dryr: "All"},
		{info: about("create", "exec"), verb: "CONNECT", scope: "resource"},
		{info: about("get", "log"), verb: "CONNECT", scope: "resource"},
		{info: about("get", "proxy"), verb: "CONNECT", scope: "resource"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+c.query, nil)
		r.Header.Set("Content-Type", c.body)
		l := labelsOf(c.info, true, r)
		if l.dryRun = dryRun(r.URL); l.verb != c.verb || l.scope != c.scope || l.dryRun != c.dryr {
			t.Errorf("%s %s %s: %+v", c.info.Verb, c.info.Subresource, c.body, l)
		}
	}
}
