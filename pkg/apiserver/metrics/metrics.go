// Package metrics counts the API server's requests under Kubernetes' metric names, with its labels and buckets.
package metrics

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/request"
)

// Requests counts requests and measures how long they take.
type Requests struct {
	total, terminations               *prometheus.CounterVec
	duration, sli, answerSize, bodies *prometheus.HistogramVec
	longRunning, deprecatedAPIs       *prometheus.GaugeVec
	deprecated                        func(*request.Info) bool
	known                             sync.Map // labels → *series
}

// place are the labels that most metrics have: what was asked for.
var place = []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}

// component is the label that tells the server's own requests from those that other servers answer.
const component = "apiserver"

// Request is an answered request.
type Request struct {
	*request.Info
	// Served is false for paths and resources that this server does not have: their names do not become labels, as
	// clients could grow them without bound.
	Served bool
	// HTTP is the request itself.
	HTTP *http.Request
	Code int
	// Took is the time to the end of the answer, and Waited the part of it that went to waiting for a turn and for
	// webhooks.
	Took, Waited time.Duration
	// Bytes is the size of the answer's body.
	Bytes int64
}

// New registers the metrics. inFlight tells how many requests are being worked on, deprecated which ask for an API that
// is deprecated.
func New(r prometheus.Registerer, inFlight func(mutating bool) int, deprecated func(*request.Info) bool) *Requests {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_" + name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "apiserver_" + name, Help: help, Buckets: buckets}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "apiserver_" + name, Help: help}, labels)
	}
	m := &Requests{
		deprecated: deprecated,
		total: counter("request_total",
			"[STABLE] Requests by verb, dry run, API, scope, component and status code of the answer.",
			append([]string{"dry_run", "code"}, place...)...),
		terminations: counter("request_terminations_total",
			"[ALPHA] Requests that the server ended to protect itself: 429 without a turn, 504 at their deadline.",
			append([]string{"code"}, place...)...),
		duration: histogram("request_duration_seconds",
			"[STABLE] Seconds to the end of the answer, by verb, dry run, API, scope and component; without watches.",
			seconds, append([]string{"dry_run"}, place...)...),
		sli: histogram("request_sli_duration_seconds",
			"[ALPHA] Seconds to the end of the answer, without those that the request waited for its turn and for webhooks.",
			seconds[2:], place...),
		answerSize: histogram("response_sizes",
			"[STABLE] Bytes of the answers of gets, lists and watches, by API, scope and component.",
			prometheus.ExponentialBuckets(1000, 10, 7), place...),
		bodies: histogram("request_body_size_bytes", "[ALPHA] Bytes of the bodies of requests, by resource and verb.",
			prometheus.LinearBuckets(50000, 100000, 31), "group", "resource", "verb"),
		longRunning: gauge("longrunning_requests",
			"[STABLE] Watches and streams that are open, by verb, API, scope and component.", place...),
		deprecatedAPIs: gauge("requested_deprecated_apis",
			"[STABLE] 1 for each deprecated API that was asked for, by group, version, resource and subresource.",
			"group", "version", "resource", "subresource", "removed_release"),
	}
	r.MustRegister(m.total, m.terminations, m.duration, m.sli, m.answerSize, m.bodies, m.longRunning,
		m.deprecatedAPIs)
	for _, kind := range []string{"readOnly", "mutating"} {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "apiserver_current_inflight_requests",
			Help:        "[STABLE] Number of requests the apiserver is working on now, by kind.",
			ConstLabels: prometheus.Labels{"request_kind": kind},
		}, func() float64 { return float64(inFlight(kind == "mutating")) }))
	}
	return m
}

// seconds are the bounds of the buckets of times. Those of request_sli_duration_seconds begin with the third.
var seconds = []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45,
	60}

// series are the metrics of the requests with the same labels.
type series struct {
	total         prometheus.Counter
	duration, sli prometheus.Observer // nil for watches
	size          prometheus.Observer // nil for requests that do not read
}

// Observe counts one request.
func (m *Requests) Observe(q *Request) {
	l := labelsOf(q.Info, q.Served, q.HTTP)
	l.dryRun, l.code = dryRun(q.HTTP.URL), q.Code
	known, ok := m.known.Load(l)
	if !ok {
		known, _ = m.known.LoadOrStore(l, m.newSeries(&l))
		if q.Served && m.deprecated(q.Info) {
			m.deprecatedAPIs.WithLabelValues(l.group, l.version, l.resource, l.subresource, "").Set(1)
		}
	}
	s := known.(*series)
	s.total.Inc()
	if s.duration != nil {
		s.duration.Observe(q.Took.Seconds())
		s.sli.Observe((q.Took - q.Waited).Seconds())
	}
	if s.size != nil {
		s.size.Observe(float64(q.Bytes))
	}
}

func (m *Requests) newSeries(l *labels) *series {
	code := strconv.Itoa(l.code)
	at := l.place()
	s := &series{total: m.total.WithLabelValues(append([]string{l.dryRun, code}, at...)...)}
	if l.verb != "WATCH" {
		s.duration = m.duration.WithLabelValues(append([]string{l.dryRun}, at...)...)
		s.sli = m.sli.WithLabelValues(at...)
	}
	switch l.verb {
	case "GET", "LIST", "WATCH":
		s.size = m.answerSize.WithLabelValues(at...)
	}
	return s
}

// Terminated counts a request that the server ended with a code to protect itself.
func (m *Requests) Terminated(info *request.Info, served bool, r *http.Request, code int) {
	l := labelsOf(info, served, r)
	m.terminations.WithLabelValues(append([]string{strconv.Itoa(code)}, l.place()...)...).Inc()
}

// Opened counts a watch or stream until the returned function is called.
func (m *Requests) Opened(info *request.Info, served bool, r *http.Request) (closed func()) {
	l := labelsOf(info, served, r)
	g := m.longRunning.WithLabelValues(l.place()...)
	g.Inc()
	return g.Dec
}

// Body counts the size of a request's body in bytes. The server has the resource.
func (m *Requests) Body(info *request.Info, bytes int) {
	verb := info.Verb
	switch verb {
	case "create", "update", "patch", "delete":
	case "deletecollection":
		verb = "delete_collection"
	default:
		return
	}
	m.bodies.WithLabelValues(info.APIGroup, info.Resource, verb).Observe(float64(bytes))
}
