// Package metrics counts the API server's requests under Kubernetes' metric names.
package metrics

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/request"
)

// Requests counts requests and measures how long they take.
type Requests struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	known    sync.Map // labels → *series
}

// New registers the metrics. inFlight tells how many requests are being worked on.
func New(r prometheus.Registerer, inFlight func(mutating bool) int) *Requests {
	m := &Requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total",
			Help: "Counter of apiserver requests broken out for each verb, group, version, resource, subresource, scope, component, and HTTP response code.",
		}, []string{"verb", "group", "version", "resource", "subresource", "scope", "component", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_request_duration_seconds",
			Help:    "Response latency distribution in seconds for each verb, group, version, resource, subresource, scope and component.",
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3, 6, 15, 30, 60},
		}, []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}),
	}
	r.MustRegister(m.total, m.duration)
	for _, kind := range []string{"readOnly", "mutating"} {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "apiserver_current_inflight_requests",
			Help:        "Number of requests the apiserver is working on now, by kind.",
			ConstLabels: prometheus.Labels{"request_kind": kind},
		}, func() float64 { return float64(inFlight(kind == "mutating")) }))
	}
	return m
}

// labels identify one series.
type labels struct {
	verb, group, version, resource, subresource, scope string
	code                                               int
}

type series struct {
	total    prometheus.Counter
	duration prometheus.Observer
}

// Observe counts one request. served is false for paths and resources that this server does not have: their names do
// not become labels, as clients could grow them without bound.
func (m *Requests) Observe(info *request.Info, served bool, code int, took time.Duration) {
	l := labels{verb: verb(info.Verb), code: code}
	if served && info.IsResource {
		l.group, l.version, l.resource, l.subresource, l.scope = info.APIGroup, info.APIVersion, info.Resource,
			info.Subresource, scope(info)
	}
	s, ok := m.known.Load(l)
	if !ok {
		s, _ = m.known.LoadOrStore(l, &series{
			total: m.total.WithLabelValues(l.verb, l.group, l.version, l.resource, l.subresource, l.scope,
				"apiserver", strconv.Itoa(code)),
			duration: m.duration.WithLabelValues(l.verb, l.group, l.version, l.resource, l.subresource, l.scope,
				"apiserver"),
		})
	}
	s.(*series).total.Inc()
	if info.Verb != "watch" {
		s.(*series).duration.Observe(took.Seconds())
	}
}

// verb is the request's verb as the metrics of Kubernetes spell it.
func verb(v string) string {
	switch v {
	case "get":
		return "GET"
	case "list":
		return "LIST"
	case "watch":
		return "WATCH"
	case "create", "post":
		return "POST"
	case "update", "put":
		return "PUT"
	case "patch":
		return "PATCH"
	case "delete":
		return "DELETE"
	case "deletecollection":
		return "DELETECOLLECTION"
	}
	return "other"
}

func scope(info *request.Info) string {
	switch {
	case info.Name != "" || len(info.Parts) > 1:
		return "resource"
	case info.Namespace != "":
		return "namespace"
	}
	return "cluster"
}
