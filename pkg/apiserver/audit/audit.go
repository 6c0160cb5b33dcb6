// Package audit notes for the audit log what was asked of the API server, by whom, and what came of it: the events of
// audit.k8s.io/v1, as an audit policy asks for them. Where they go is in the package sink below it.
//
// A request has one Record while it lasts. It is made after authentication (a request that fails there has one of its
// own), says at its stages what is known by then, and is given to the sinks as an event that nobody changes any more.
package audit

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"bonsai/pkg/apiserver/request"
)

// Sink is where events go.
type Sink interface {
	// Process takes events. An error tells that they are lost.
	Process(events ...*auditv1.Event) error
	// Strict tells that a request is refused whose first event is lost.
	Strict() bool
	// Name is that of the sink in metrics: "log" or "webhook".
	Name() string
	// Run writes what waits until ctx ends, and then what is left.
	Run(ctx context.Context)
}

// Config is what the audit log is made of.
type Config struct {
	// Policy says what is noted; required.
	Policy *Policy
	// Sinks are where events go.
	Sinks []Sink
	// Scheme decodes answers in protobuf; required.
	Scheme *runtime.Scheme
	// Metrics may be nil.
	Metrics *Metrics
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// Auditor makes the records of requests.
type Auditor struct{ Config }

// New returns an Auditor.
func New(cfg Config) *Auditor {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(nil)
	}
	return &Auditor{cfg}
}

// Run lets the sinks write until ctx ends, and then what is left.
func (a *Auditor) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, s := range a.Sinks {
		all.Go(func() { s.Run(ctx) })
	}
	all.Wait()
}

// Begin returns the record of a request by user, which is nil if authentication failed; nil if the policy records
// nothing of the request. id is the request's Audit-ID.
func (a *Auditor) Begin(r *http.Request, info *request.Info, user *request.User, id string) *Record {
	d := a.Policy.decide(user, info)
	a.Metrics.levels.WithLabelValues(string(d.level)).Inc()
	if d.level == auditv1.LevelNone {
		return nil
	}
	return newRecord(a, d, r, info, user, id)
}

// Process gives an event to all sinks. refused tells that one of them lost it that must not lose any.
func (a *Auditor) Process(e *auditv1.Event) (refused bool) {
	a.Metrics.events.Inc()
	for _, s := range a.Sinks {
		if err := s.Process(e); err != nil {
			a.Metrics.Lost(s.Name(), 1)
			a.Log.Error("audit events are lost", "sink", s.Name(), "err", err)
			refused = refused || s.Strict()
		}
	}
	return refused
}

// Metrics counts events under upstream's names.
type Metrics struct {
	events, rejected prometheus.Counter
	levels, errors   *prometheus.CounterVec
}

// NewMetrics registers the metrics with r, which may be nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		events: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "apiserver_audit_event_total",
				Help: "Counter of audit events generated and sent to the audit backend."}),
		rejected: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "apiserver_audit_requests_rejected_total",
				Help: "Counter of apiserver requests rejected due to an error in audit logging backend."}),
		levels: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "apiserver_audit_level_total",
				Help: "Counter of policy levels for audit events (1 per request)."}, []string{"level"}),
		errors: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "apiserver_audit_error_total",
				Help: "Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error."}, []string{"plugin"}),
	}
	if r != nil {
		r.MustRegister(m.events, m.rejected, m.levels, m.errors)
	}
	return m
}

// Lost counts events that a sink could not keep.
func (m *Metrics) Lost(sink string, events int) { m.errors.WithLabelValues(sink).Add(float64(events)) }

// Rejected counts a request that was refused because its event was lost.
func (m *Metrics) Rejected() { m.rejected.Inc() }
