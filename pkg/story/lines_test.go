package story

import (
	"strings"
	"testing"
	"time"

	"bonsai/api/traces"
)

// TestTriedAgain: the time between a failure and the next try is named so.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	const s = time.Second
	failed := func(name string, at time.Duration) traces.Span {
		out := spanAt("", "", name, at, s)
		out.Error = "x"
		return out
	}
	for want, next := range map[string]traces.Span{
		"waiting to try again after a failure: starting a container": spanAt("", "", "kubelet.create", 20*s, s),
		"between starting a container and mounting volumes":          spanAt("", "", "kubelet.volumes", 20*s, s),
		"before the last run of a container":                         spanAt("", "", "kubelet.run", 20*s, s),
	} {
		p := New(&traces.Trace{Object: traces.Object{Kind: "Pod"},
			Spans: []traces.Span{failed("kubelet.start", 0), next}}, "", 0).Phase(Startup)
		if got := p.Path[1].Name; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// drawn are the names of a picture's lines, each with its depth as spaces.
func drawn(lines []Line) string {
	var out []string
	for _, l := range lines {
		if l.Heading == "" {
			out = append(out, strings.Repeat(" ", l.Depth)+l.Name)
		}
	}
	return strings.Join(out, "|")
}

// TestLines: what takes no time to speak of does not bury what matters, also if it is on the critical path and the
// whole is short; what fails alike has one line.
func TestLines(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	of := func(component, id, parent, name string, from, took time.Duration) traces.Span {
		s := spanAt(id, parent, name, from, took)
		s.Component = component
		return s
	}
	failed := func(s traces.Span, failure string) traces.Span {
		s.Error = failure
		return s
	}
	request := []traces.Span{of(apiserver, "r", "", "POST /pods", 0, 9*ms),
		of(apiserver, "r1", "r", "authentication", 0, 8*time.Microsecond),
		of(apiserver, "r2", "r", "admission", 1*ms, 2*ms), of(apiserver, "r3", "r2", "webhook", 1*ms, ms),
		of(apiserver, "r4", "r", "apiserver.create", 3*ms, 5*ms)}
	start := func(at time.Duration) traces.Span { return spanAt("", "", "kubelet.start", at, 10*ms) }
	for name, test := range map[string]struct {
		spans  []traces.Span
		want   string
		hidden int
	}{
		"a short whole": {append(request[:5:5], of("kube-scheduler", "q", "", "scheduler.queue", 9*ms, 6*ms)),
			"POST /pods| admission| create|queue", 2},
		"a long whole": {append(request[:5:5], spanAt("p", "", "kubelet.pull", 9*ms, 2000*ms)),
			"POST /pods|pull", 4},
		"a failure inside a request": {append(request[:1:1], failed(request[2], "denied"),
			spanAt("p", "", "kubelet.pull", 9*ms, 2000*ms)), "POST /pods| admission|pull", 0},
		"again and again": {[]traces.Span{start(0), failed(start(20*ms), "x"), failed(start(40*ms), "x"),
			failed(start(60*ms), "y"), failed(start(80*ms), "x"), start(100 * ms)}, "start 2x|start 3x|start|" +
			"between starting a container and the next time|waiting to try again after a failure: starting a container", 0},
		"at the same time": {[]traces.Span{start(0), start(5 * ms)}, "start|start", 0},
	} {
		p := New(&traces.Trace{Object: traces.Object{Kind: "Pod"}, Spans: test.spans}, "", 0).Phase(Startup)
		lines, hidden := p.Lines(false)
		if got := drawn(lines); got != test.want || hidden != test.hidden {
			t.Errorf("%s: %s, %d hidden, want %s, %d", name, got, hidden, test.want, test.hidden)
		}
		all, hidden := p.Lines(true)
		n := 0
		for _, l := range all {
			if l.Step != nil {
				n += len(l.Bars())
			}
		}
		if n != len(test.spans) || hidden != 0 || strings.Contains(drawn(all), "x|") {
			t.Errorf("%s: %d of %d steps where all are asked for: %s", name, n, len(test.spans), drawn(all))
		}
	}
}
