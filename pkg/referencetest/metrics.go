package referencetest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Registry is a registry that remembers the collectors: a registry alone cannot say of what type a metric is before it
// has a value.
type Registry struct {
	*prometheus.Registry
	mu         sync.Mutex
	collectors []prometheus.Collector
}

var _ prometheus.Registerer = (*Registry)(nil)

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{Registry: prometheus.NewRegistry()} }

// Register implements prometheus.Registerer.
func (r *Registry) Register(c prometheus.Collector) error {
	if err := r.Registry.Register(c); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.collectors = append(r.collectors, c)
	return nil
}

// MustRegister implements prometheus.Registerer.
func (r *Registry) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// Metrics returns the metrics of everything that was registered.
func (r *Registry) Metrics() []Metric {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Metrics(r.collectors...)
}

// Metric describes one metric.
type Metric struct {
	Name, Help, Type string
	Labels           []string // sorted, constant ones too
}

// Metrics describes what the collectors can show, sorted by name. A metric counts before it has a value, too.
func Metrics(collectors ...prometheus.Collector) []Metric {
	all := map[string]Metric{}
	for _, c := range collectors {
		values := map[string]string{}
		each(c.Collect, func(m prometheus.Metric) {
			add(all, m.Desc(), kindOf(c, m))
			values[m.Desc().String()] = kindOf(c, m)
		})
		each(c.Describe, func(d *prometheus.Desc) {
			if _, has := values[d.String()]; !has {
				add(all, d, kindOf(c, nil))
			}
		})
	}
	return sorted(all)
}

func sorted(all map[string]Metric) []Metric {
	return slices.SortedFunc(maps.Values(all), func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
}

// each calls use with all that send sends.
func each[T any](send func(chan<- T), use func(T)) {
	ch := make(chan T)
	go func() {
		defer close(ch)
		send(ch)
	}()
	for x := range ch {
		use(x)
	}
}

// description matches the only form in which the library shows what a description holds.
var (
	description = regexp.MustCompile(
		`^Desc\{fqName: "([^"]*)", help: "(.*)", unit: "[^"]*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)
	constant = regexp.MustCompile(`(?:^|,)([a-z_0-9]+)="`)
	unquote  = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, " ")
)

func add(all map[string]Metric, d *prometheus.Desc, kind string) {
	m := description.FindStringSubmatch(d.String())
	if m == nil {
		return // an invalid one, which its registry refuses
	}
	labels := strings.FieldsFunc(m[4], func(r rune) bool { return r == ',' })
	for _, c := range constant.FindAllStringSubmatch(m[3], -1) {
		labels = append(labels, c[1])
	}
	slices.Sort(labels)
	if kind == "" {
		kind = byName(m[1])
	}
	all[m[1]] = Metric{Name: m[1], Help: unquote.Replace(m[2]), Type: kind, Labels: labels}
}

// kindOf returns the type of a collector's metrics, or of one value of it; "" if neither says.
func kindOf(c prometheus.Collector, m prometheus.Metric) string {
	switch c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec:
		return "histogram"
	case *prometheus.SummaryVec:
		return "summary"
	}
	var value dto.Metric
	if m == nil || m.Write(&value) != nil {
		return ""
	}
	switch {
	case value.Counter != nil:
		return "counter"
	case value.Histogram != nil:
		return "histogram"
	case value.Summary != nil:
		return "summary"
	case value.Untyped != nil:
		return "untyped"
	}
	return "gauge"
}

// byName is the type of a metric that a collector of its own makes and that has no value yet. Such collectors make
// counters and gauges only, and Prometheus' convention ends the names of counters with _total.
func byName(name string) string {
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

var (
	helpOrType = regexp.MustCompile(`^# (HELP|TYPE) (\S+) (.*)$`)
	sample     = regexp.MustCompile(`^([^{ ]+)(?:\{(.*)\})? `)
)

// Exposed describes the metrics of a page in Prometheus' text format, which no collector made. It has no histograms.
func Exposed(page string) []Metric {
	all := map[string]Metric{}
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if m := helpOrType.FindStringSubmatch(line); m != nil {
			metric := all[m[2]]
			metric.Name = m[2]
			if m[1] == "HELP" {
				metric.Help = m[3]
			} else {
				metric.Type = m[3]
			}
			all[m[2]] = metric
		} else if m := sample.FindStringSubmatch(line); m != nil {
			metric := all[m[1]]
			for _, c := range constant.FindAllStringSubmatch(m[2], -1) {
				metric.Labels = append(metric.Labels, c[1])
			}
			slices.Sort(metric.Labels)
			metric.Labels = slices.Compact(metric.Labels)
			all[m[1]] = metric
		}
	}
	return sorted(all)
}

// MetricsTable renders metrics.
func MetricsTable(metrics []Metric) string {
	var rows [][]string
	for _, m := range metrics {
		rows = append(rows, []string{Code(m.Name), m.Type, Code(strings.Join(m.Labels, ", ")), m.Help})
	}
	return Table([]string{"metric", "type", "labels", "meaning"}, rows)
}

// MetricsPage holds docs/reference/metrics/name.md against metrics. title is the page's, where says who serves them and
// at which path, pkg is the package of the test.
func MetricsPage(t *testing.T, name, title, where, pkg string, metrics []Metric) {
	t.Helper()
	Check(t, "metrics/"+name+".md", fmt.Sprintf("# %s\n\n%s Made from the collectors by "+
		"`go test %s -run TestReference -args -update`.\n\n", title, where, pkg)+MetricsTable(metrics))
}
