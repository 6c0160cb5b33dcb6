package story

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"bonsai/api/traces"
)

// startup is the story of a pod that was Ready after the last of some steps.
func startup(name string, end float64, steps ...*Step) *Story {
	p := &Phase{Name: Startup, Done: true, Start: zero(), Steps: steps,
		End: zero().Add(time.Duration(end * float64(time.Second)))}
	ordered(p.Steps)
	p.Path = criticalPath(p)
	return &Story{Object: traces.Object{Kind: "Pod", Name: name}, Phases: []*Phase{p}}
}

// TestSummarize: percentiles are nearest ranks, shares are of all critical paths, steps beside one another count once.
func TestSummarize(t *testing.T) {
	t.Parallel()
	var all []*Story
	for i := 1; i <= 10; i++ {
		pull := float64(i)
		all = append(all, startup(fmt.Sprintf("p%02d", i), pull+2, at("pull", 0, pull), at("pull", 0, pull/2),
			at("start", pull, pull+1)))
	}
	all = append(all, &Story{Phases: []*Phase{{Name: Startup}}}, &Story{})
	s := Summarize(all, 2)
	if s.Unready != 2 || s.Total.Count != 10 || s.Total.P50 != 7*time.Second || s.Total.Max != 12*time.Second {
		t.Errorf("total %+v, %d not Ready", s.Total, s.Unready)
	}
	var got []string
	for _, x := range s.Steps {
		got = append(got, fmt.Sprintf("%s %d %s %s %s %s %s", x.Name, x.Count, x.P50, x.P90, x.P99, x.Max,
			Percent(x.Share)))
	}
	want := []string{"pull 10 5s 9s 10s 10s 73%", "start 10 1s 1s 1s 1s 13%", "waiting to become Ready 10 1s 1s 1s 1s 13%"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	if len(s.Slowest) != 2 || s.Slowest[0].Object.Name != "p10" || s.Slowest[0].Longest != "pull" ||
		s.Slowest[0].LongTime != 10*time.Second {
		t.Errorf("slowest %+v", s.Slowest)
	}
	if empty := Summarize(nil, 5); empty.Total.Count != 0 || len(empty.Steps)+len(empty.Slowest) != 0 {
		t.Errorf("of nothing: %+v", empty)
	}
}

// TestRows: steps that have under a hundredth of the time are folded, unless it is one alone.
func TestRows(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		shares []float64
		most   int
		want   string
	}{
		"none":     {nil, 9, "0 rows, 0 more, 0%"},
		"all":      {[]float64{0.9, 0.1}, 9, "2 rows, 0 more, 0%"},
		"small":    {[]float64{0.97, 0.01, 0.009, 0.009, 0.002, 0}, 9, "2 rows, 4 more, 2%"},
		"one":      {[]float64{0.99, 0.009}, 9, "2 rows, 0 more, 0%"},
		"too many": {[]float64{0.5, 0.2, 0.2, 0.1}, 2, "2 rows, 2 more, 30%"},
	} {
		var s Summary
		for _, share := range test.shares {
			s.Steps = append(s.Steps, Spread{Share: share})
		}
		rows, more, share := s.Rows(test.most)
		if got := fmt.Sprintf("%d rows, %d more, %s", len(rows), more, Percent(share)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestGapNames: a gap between steps that have words is named by them, and never by the names of spans.
func TestGapNames(t *testing.T) {
	t.Parallel()
	p := &Phase{Name: Startup}
	named := func(name string) *Step {
		component, _, _ := strings.Cut(name, ".")
		return &Step{Name: name, Component: component}
	}
	for name := range meanings {
		if name == "scheduler.plugin" {
			continue // inside other steps
		}
		for _, got := range []string{gapName(named(name), named("kubelet.status"), p), gapName(named(name), nil, p),
			gapName(nil, named(name), p)} {
			if strings.Contains(got, "kubelet.") || strings.Contains(got, "scheduler.") ||
				strings.Contains(got, "kube-proxy.") || strings.Contains(got, "apiserver.") {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	request := &Step{Name: "PATCH /api/v1/pods", Component: apiserver}
	for want, got := range map[string]string{
		"between writing the status and the next time":                    gapName(named("kubelet.status"), named("kubelet.status"), p),
		"between pulling an image and starting a container":               gapName(named("kubelet.pull"), named("kubelet.start"), p),
		"between a request to the API server and a round of a controller": gapName(request, &Step{Name: "kube-controller-manager.job", Component: "kube-controller-manager"}, p),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestCompare: what grew most comes first after the whole; steps of one time alone stay.
func TestCompare(t *testing.T) {
	t.Parallel()
	then := Summarize([]*Story{startup("a", 3, at("pull", 0, 1), at("old", 1, 2), at("start", 2, 3))}, 0)
	now := Summarize([]*Story{startup("a", 6, at("pull", 0, 4), at("new", 4, 5), at("start", 5, 6))}, 0)
	var got []string
	for _, c := range Compare(then, now) {
		got = append(got, fmt.Sprintf("%s %s %d %d", c.Name, Signed(c.P50(), 0), c.Then.Count, c.Now.Count))
	}
	want := "startup +3.00s 1 1, pull +3.00s 1 1, new 0 0 1, start 0 1 1, old 0 1 0"
	if got := strings.Join(got, ", "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestRollout: a rollout is over when the last pod is Ready, and its path leads through that pod. The stories of the
// pods keep their own paths.
func TestRollout(t *testing.T) {
	t.Parallel()
	fast, slow := startup("fast", 2, at("pull", 0, 2)), startup("slow", 5, at("queue", 0, 1), at("pull", 1, 5))
	rollout := Rollout(Workload{Object: traces.Object{Kind: "Deployment", Name: "web"}}, nil, []*Story{fast, slow})
	p := rollout.Phase(Startup)
	if !p.Done || p.Duration() != 5*time.Second || len(p.Path) != 2 || p.Path[1].Name != "pull" {
		t.Errorf("%+v", p)
	}
	if fast.Phases[0].Steps[0].OnPath != 2*time.Second {
		t.Error("the path of a pod was changed")
	}
	// A pod of a Deployment that replaces another much later is no part of the rollout, one of a StatefulSet is.
	replaced := startup("replaced", 2, at("pull", 0, 2))
	replaced.Phases[0].Start, replaced.Phases[0].End = zero().Add(time.Hour), zero().Add(time.Hour+time.Second)
	for kind, want := range map[string]time.Duration{"Deployment": 5 * time.Second,
		"StatefulSet": time.Hour + time.Second} {
		s := Rollout(Workload{Object: traces.Object{Kind: kind}}, nil, []*Story{replaced, fast, slow})
		if p := s.Phase(Startup); p.Duration() != want || len(s.Notes) > 0 != (kind == "Deployment") {
			t.Errorf("%s: %s, notes %q", kind, p.Duration(), s.Notes)
		}
	}
	waiting := startup("waiting", 1, at("queue", 0, 1))
	waiting.Phases[0].Done = false
	if p := Rollout(Workload{Object: traces.Object{}}, nil, []*Story{fast, waiting}).Phase(Startup); p.Done {
		t.Error("done, although a pod is not Ready")
	}
	// Of the owners, what was done meanwhile counts, and what was done long ago does not.
	owner := &Story{Phases: []*Phase{{Name: Known, Steps: []*Step{at("round", -0.5, 0.5), at("before", -9000, -8990)}}}}
	p = Rollout(Workload{Object: traces.Object{}}, []*Story{owner}, []*Story{fast, slow}).Phase(Startup)
	if p.Duration() != 5500*time.Millisecond || len(p.Steps) != 3 || p.Path[0].Name != "round" {
		t.Errorf("with its owner: %+v", p)
	}
	whole(t, p)
	if s := Rollout(Workload{Object: traces.Object{}}, nil, nil); len(s.Phases) != 0 {
		t.Error("a rollout without pods")
	}
}

// TestText: durations as people read them.
func TestText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		d, resolution time.Duration
		want          string
	}{
		{0, 0, "0"}, {0, time.Second, "<1s"}, {999, 0, "999ns"}, {1500, 0, "2µs"}, {999_600, 0, "1.00ms"},
		{12_345_678, 0, "12.3ms"}, {99_960_000, 0, "100ms"}, {999_600_000, 0, "1.00s"}, {9_996_000_000, 0, "10.0s"},
		{59_960_000_000, 0, "1m00s"}, {3 * time.Second, time.Second, "3s"}, {90 * time.Second, 0, "1m30s"},
		{3*time.Hour + 5*time.Minute, 0, "3h05m"}, {100 * time.Hour, 0, "4d04h"}, {-time.Second, 0, "-1.00s"},
	} {
		if got := Text(test.d, test.resolution); got != test.want {
			t.Errorf("%s at %s: %s, want %s", test.d, test.resolution, got, test.want)
		}
	}
}
