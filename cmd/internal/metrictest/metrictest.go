// Package metrictest holds the metrics of a component against those of Kubernetes' own.
package metrictest

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	tracingapi "k8s.io/component-base/tracing/api/v1"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/referencetest"
)

// Stock wants every metric of Kubernetes' component of that name, as pkg/cluster/testdata/metrics has them, to be among
// shown with the same labels, or in the tables below "## Metrics" of docs/stock.md, which say why it is not; and
// nothing in these tables that is shown, or that Kubernetes does not have. A metric counts as shown once it can be:
// also before anything was observed.
func Stock(t *testing.T, component string, shown []referencetest.Metric) {
	t.Helper()
	root := filepath.Join("..", "..")
	recorded, err := os.ReadFile(filepath.Join(root, "pkg", "cluster", "testdata", "metrics", component+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "stock.md"))
	if err != nil {
		t.Fatal(err)
	}
	ours, stock := map[string]string{}, map[string]string{}
	for _, m := range shown {
		ours[m.Name] = strings.Join(m.Labels, ",")
	}
	for line := range strings.Lines(string(recorded)) {
		fields := append(strings.Fields(line), "") // name, type, stability, labels
		stock[fields[0]] = fields[3]
	}
	told := absent(string(page), component)
	for name, labels := range stock {
		have, here := ours[name]
		switch excused := slices.Contains(told, name); {
		case !here && !excused:
			t.Errorf("%s of Kubernetes' %s is not there, and docs/stock.md does not say why", name, component)
		case here && excused:
			t.Errorf("docs/stock.md says that %s does not have %s", component, name)
		case here && have != labels:
			t.Errorf("%s has the labels %q, want %q", name, have, labels)
		}
	}
	for _, name := range told {
		if _, ok := stock[name]; !ok {
			t.Errorf("docs/stock.md names %s, which Kubernetes' %s does not have", name, component)
		}
	}
}

var metric = regexp.MustCompile("`([a-z][a-z0-9_]*)`")

// Common describes the metrics that components have in common: those of every component, of clients of the API server,
// and of what makes spans.
func Common(t *testing.T) []referencetest.Metric {
	t.Helper()
	r := referencetest.NewRegistry()
	r.MustRegister(daemon.NewMetrics())
	daemon.NewRequests(r)
	var traced daemon.Tracing
	traced.Use(&tracingapi.TracingConfiguration{})
	_, end, err := traced.Open(t.Context(), "component", "", r, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	return r.Metrics()
}

// Own are those of shown that are not in Common.
func Own(t *testing.T, shown []referencetest.Metric) []referencetest.Metric {
	t.Helper()
	common := Common(t)
	return slices.DeleteFunc(slices.Clone(shown), func(m referencetest.Metric) bool {
		return slices.ContainsFunc(common, func(c referencetest.Metric) bool { return c.Name == m.Name })
	})
}

// absent are the metrics in the page's tables below "## Metrics" in rows whose first cell names the component.
func absent(page, component string) (names []string) {
	_, page, _ = strings.Cut(page, "\n## Metrics\n")
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`"+component+"`") {
			continue
		}
		for _, m := range metric.FindAllStringSubmatch(cells[2], -1) {
			names = append(names, m[1])
		}
	}
	return names
}
