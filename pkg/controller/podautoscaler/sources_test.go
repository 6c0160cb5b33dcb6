package podautoscaler

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"bonsai/api/scheme"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/served"
)

const (
	podsAnswer = `{"kind":"PodMetricsList","items":[
		{"metadata":{"name":"a"},"timestamp":"2026-11-22T17:00:00Z","window":"15.5s","containers":[{"name":"c","usage":{"cpu":"100m","memory":"1Ki"}},{"name":"d","usage":{"cpu":"5500u"}}]},
		{"metadata":{"name":"b"},"timestamp":"2026-11-22T17:00:00Z","window":"15s","containers":[{"name":"c","usage":{"cpu":"1"}}]}]}`
	customAnswer = `{"kind":"MetricValueList","items":[{"describedObject":{"kind":"Pod","name":"a"},"timestamp":"2026-11-22T17:00:00Z","windowSeconds":30,"value":"1500m"},
		{"describedObject":{"kind":"Pod","name":"b"},"timestamp":"2026-11-22T17:00:00Z","value":"2k"}]}`
	oneAnswer = `{"items":[{"describedObject":{"kind":"Ingress","name":"main"},"timestamp":"2026-11-22T17:00:00Z","value":"1500m"}]}`
	refusal   = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","message":"the server could not find the metric hits: ask your operator"}`
	apis      = `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"networking.k8s.io"},"versions":[{"version":"v1","resources":[
		{"resource":"ingresses","responseKind":{"group":"","version":"","kind":"Ingress"},"scope":"Namespaced","singularResource":"ingress","verbs":["get"]}]}]}]}`
)

// metricsAPIs answers by path and query.
func metricsAPIs(t *testing.T, answers map[string]string) *sources {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := r.URL.Path
		if r.URL.RawQuery != "" {
			at += "?" + r.URL.RawQuery
		}
		body, ok := answers[at]
		if strings.HasPrefix(body, `{"kind":"Status"`) { // what an adapter refuses
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, body)
			return
		}
		if !ok {
			http.Error(w, "404 page not found", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}))
	t.Cleanup(srv.Close)
	c, err := apiclient.New(&rest.Config{Host: srv.URL}, scheme.New())
	if err != nil {
		t.Fatal(err)
	}
	return &sources{c, served.NewFinder(served.By(c), time.Now)}
}

func TestSources(t *testing.T) {
	t.Parallel()
	s := metricsAPIs(t, map[string]string{
		"/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods?labelSelector=app%3Dx":                                        podsAnswer,
		"/apis/metrics.k8s.io/v1beta1/namespaces/empty/pods?labelSelector=app%3Dx":                                     `{"items":[]}`,
		"/apis/custom.metrics.k8s.io":                                                                                  `{"kind":"APIGroup","versions":[{"version":"v1beta1"},{"version":"v1beta2"}]}`,
		"/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/qps?labelSelector=app%3Dx&metricLabelSelector=a%3Db": customAnswer,
		"/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/ingresses.networking.k8s.io/main/hits":                      oneAnswer,
		"/apis/custom.metrics.k8s.io/v1beta2/namespaces/other/metrics/hits":                                            oneAnswer,
		"/apis/custom.metrics.k8s.io/v1beta2/namespaces/none/metrics/hits":                                             `{"items":[]}`,
		"/apis/custom.metrics.k8s.io/v1beta2/namespaces/refused/metrics/hits":                                          refusal,
		"/apis/metrics.k8s.io/v1beta1/namespaces/refused/pods?labelSelector=app%3Dx":                                   refusal,
		"/apis/external.metrics.k8s.io/v1beta1/namespaces/refused/q":                                                   refusal,
		"/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/q?labelSelector=a%3Db":                                    `{"items":[{"metricName":"q","value":"3"},{"metricName":"q","value":"500m"}]}`,
		"/api": `{"kind":"APIGroupDiscoveryList","items":[]}`, "/apis": apis,
	})
	at := time.Date(2026, 11, 22, 17, 0, 0, 0, time.UTC)
	of := func(milli int64, window time.Duration) podValue { return podValue{milli, at, window} }
	labelled := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	memory, container := cpu(1), autoscalingv2.MetricSpec{
		Type:              autoscalingv2.ContainerResourceMetricSourceType,
		ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: "cpu", Container: "d"},
	}
	memory.Resource.Name = "memory"
	object := func(kind, name, version string) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType,
			Object: &autoscalingv2.ObjectMetricSource{
				DescribedObject: autoscalingv2.CrossVersionObjectReference{Kind: kind, Name: name, APIVersion: version},
				Metric:          autoscalingv2.MetricIdentifier{Name: "hits"},
			}}
	}
	for _, c := range []struct {
		name, namespace string
		metric          autoscalingv2.MetricSpec
		pods            map[string]podValue
		values          []int64
		err             string
	}{
		{"resource", "ns", cpu(1),
			map[string]podValue{"a": of(106, 15500*time.Millisecond), "b": of(1000, 15*time.Second)}, nil, ""},
		{"a resource of which not all is known", "ns", memory, map[string]podValue{}, nil, ""},
		{"container", "ns", container, map[string]podValue{"a": of(6, 15500*time.Millisecond)}, nil, ""},
		{"nothing is known", "empty", cpu(1), nil, nil, "no metrics returned from resource metrics API"},
		{"no such API", "x", cpu(1), nil, nil,
			"unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"},
		{"pods", "ns", autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType,
			Pods: &autoscalingv2.PodsMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: "qps", Selector: labelled}}},
			map[string]podValue{"a": of(1500, 30*time.Second), "b": of(2_000_000, time.Minute)}, nil, ""},
		{"object", "ns", object("Ingress", "main", "networking.k8s.io/v1"), nil, []int64{1500}, ""},
		{"namespace", "ns", object("Namespace", "other", "v1"), nil, []int64{1500}, ""},
		{"no metric of an object", "ns", object("Namespace", "none", "v1"), nil, nil,
			"unable to fetch metrics from custom metrics API: the custom metrics API server returned 0 results when we asked for exactly one"},
		{"custom, refused", "ns", object("Namespace", "refused", "v1"), nil, nil,
			"unable to fetch metrics from custom metrics API: the server could not find the metric hits: ask your operator"},
		{"resource, refused", "refused", cpu(1), nil, nil,
			"unable to fetch metrics from resource metrics API: the server could not find the metric hits: ask your operator"},
		{"external, refused", "refused",
			autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType,
				External: &autoscalingv2.ExternalMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "q"}}},
			nil, nil, "unable to fetch metrics from external metrics API: the server could not find the metric hits: ask your operator"},
		{"unknown object", "ns", object("Nope", "x", "g/v1"), nil, nil, `no matches for kind "Nope" in group "g"`},
		{"external", "ns", autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType,
			External: &autoscalingv2.ExternalMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: "q", Selector: labelled}}},
			nil, []int64{3000, 500}, ""},
	} {
		r := s.read(t.Context(), c.namespace, "app=x", &c.metric)
		said := ""
		if r.err != nil {
			said = r.err.Error()
		}
		if said != c.err {
			t.Errorf("%s: error %q, want %q", c.name, said, c.err)
		}
		if diff := cmp.Diff(c.pods, r.pods, cmp.AllowUnexported(podValue{})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if diff := cmp.Diff(c.values, r.values); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	r := metricsAPIs(t, nil).read(t.Context(), "ns", "app=x",
		&autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{}})
	if r.err == nil || r.err.Error() !=
		"unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered" {
		t.Errorf("without custom metrics: %v", r.err)
	}
}
