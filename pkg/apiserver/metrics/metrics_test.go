package metrics

import (
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
	})
	info := &request.Info{IsResource: true, Verb: "list", APIVersion: "v1", Resource: "pods", Parts: []string{"pods"}}
	m.Observe(info, true, 200, time.Millisecond)
	m.Observe(info, true, 200, time.Millisecond)
	m.Observe(&request.Info{IsResource: true, Verb: "get", Resource: "made-up"}, false, 404, time.Millisecond)
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
