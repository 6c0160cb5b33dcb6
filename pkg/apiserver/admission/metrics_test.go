package admission

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// judge is a plug-in of one answer.
type judge struct{ err error }

func (j judge) Admit(context.Context, *Attributes) error { return j.err }

func (j judge) Validate(context.Context, *Attributes) error { return j.err }

// TestMeasure: each plug-in that was asked is counted, by half, operation and answer; those after a refusal are not.
// The halves are counted as a whole, too.
func TestMeasure(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	c := NewChain(Plugin{Name: "First", Mutator: judge{}}, Plugin{Name: "Second", Mutator: judge{errors.New("no")},
		Validator: judge{}}, Plugin{Name: "Third", Mutator: judge{}}, Plugin{Name: "Nothing"})
	c.Measure(r)
	for range 2 {
		if err := c.Admit(t.Context(), &Attributes{Operation: Create}); err == nil {
			t.Error("the second plug-in does not refuse")
		}
	}
	if err := c.Validate(t.Context(), &Attributes{Operation: Delete}); err != nil {
		t.Error(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, f := range families {
		name := strings.TrimPrefix(f.GetName(), "apiserver_admission_")
		name = strings.TrimSuffix(name, "admission_duration_seconds")
		for _, m := range f.GetMetric() {
			labels := []string{name}
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			got[strings.Join(labels, " ")] = m.GetHistogram().GetSampleCount() + m.GetSummary().GetSampleCount()
		}
	}
	const summary = "step_admission_duration_seconds_summary "
	want := map[string]uint64{"controller_ First CREATE false admit": 2, "controller_ Second CREATE true admit": 2,
		"controller_ Second DELETE false validate": 1, "step_ CREATE true admit": 2, "step_ DELETE false validate": 1,
		summary + "CREATE true admit": 2, summary + "DELETE false validate": 1}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%s: %d, want %d", k, got[k], n)
		}
	}
}

// BenchmarkMeasure is what measuring costs a write that 40 plug-ins look at.
func BenchmarkMeasure(b *testing.B) {
	var plugins []Plugin
	for range 40 {
		plugins = append(plugins, Plugin{Name: "P", Mutator: judge{}})
	}
	c := NewChain(plugins...)
	c.Measure(prometheus.NewRegistry())
	for b.Loop() {
		if err := c.Admit(b.Context(), &Attributes{Operation: Create}); err != nil {
			b.Fatal(err)
		}
	}
}
