package admission

import (
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The two halves of admission, as indexes of series.
const (
	mutating = iota
	validating
)

// operations are in the order of their indexes in series.
var operations = [...]Operation{Create, Update, Delete, Connect}

// times measures a chain and its plug-ins under upstream's names.
type times struct {
	vec    *prometheus.HistogramVec
	names  []string
	series []series
	// steps are the halves as a whole, in a histogram and a summary.
	steps   *prometheus.HistogramVec
	summary *prometheus.SummaryVec
}

// series are the histograms of one plug-in, by half, operation and whether it refused. Each is looked up once: the
// lookup costs more than most plug-ins.
type series [2][len(operations)][2]atomic.Pointer[prometheus.Observer]

func newTimes(r prometheus.Registerer, plugins []Plugin) *times {
	t := &times{series: make([]series, len(plugins)), vec: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "apiserver_admission_controller_admission_duration_seconds",
		Help:    "Admission controller latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
		Buckets: []float64{0.005, 0.025, 0.1, 0.5, 1.0, 2.5},
	}, []string{"name", "type", "operation", "rejected"})}
	for i := range plugins {
		t.names = append(t.names, plugins[i].Name)
	}
	const step = "apiserver_admission_step_admission_duration_seconds"
	labels := []string{"type", "operation", "rejected"}
	t.steps = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: step,
		Help:    "[STABLE] Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type (validate or admit).",
		Buckets: []float64{0.005, 0.025, 0.1, 0.5, 1.0, 2.5}}, labels)
	t.summary = prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: step + "_summary",
		Help:       "[ALPHA] Admission sub-step latency summary in seconds, broken out for each operation and API resource and step type (validate or admit).",
		Objectives: map[float64]float64{0.5: 0.05, 0.9: 0.01, 0.99: 0.001}, MaxAge: 5 * time.Hour}, labels)
	r.MustRegister(t.vec, t.steps, t.summary)
	return t
}

// halves are the values of the label type.
var halves = [...]string{"admit", "validate"}

// step measures a half as a whole, which began at start. t may be nil.
func (t *times) step(start time.Time, half int, op Operation, rejected bool) {
	if t == nil {
		return
	}
	took := time.Since(start).Seconds()
	t.steps.WithLabelValues(halves[half], string(op), strconv.FormatBool(rejected)).Observe(took)
	t.summary.WithLabelValues(halves[half], string(op), strconv.FormatBool(rejected)).Observe(took)
}

// stopwatch measures the plug-ins of one run.
type stopwatch struct {
	times *times
	last  time.Time
}

// start begins a run. t may be nil.
func (t *times) start() stopwatch {
	if t == nil {
		return stopwatch{}
	}
	return stopwatch{t, time.Now()}
}

// lap ends the turn of plug-in i, which began when the one before it ended.
func (s *stopwatch) lap(i, half int, op Operation, rejected bool) {
	if s.times == nil {
		return
	}
	now := time.Now()
	s.times.observer(i, half, op, rejected).Observe(now.Sub(s.last).Seconds())
	s.last = now
}

func (t *times) observer(i, half int, op Operation, rejected bool) prometheus.Observer {
	no := 0
	if rejected {
		no = 1
	}
	at := &t.series[i][half][max(0, slices.Index(operations[:], op))][no]
	if known := at.Load(); known != nil {
		return *known
	}
	o := t.vec.WithLabelValues(t.names[i], halves[half], string(op),
		strconv.FormatBool(rejected))
	at.Store(&o)
	return o
}
