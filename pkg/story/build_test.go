package story

import (
	"fmt"
	"testing"
	"time"

	"bonsai/api/traces"
)

func spanAt(id, parent, name string, from, took time.Duration) traces.Span {
	return traces.Span{TraceID: "t", ID: id, Parent: parent, Name: name, Component: "kubelet", Start: zero().Add(from),
		Duration: took}
}

// TestPhases: a life has its startup until Ready, what came later, and its end.
func TestPhases(t *testing.T) {
	t.Parallel()
	s := New(&traces.Trace{Object: traces.Object{Kind: "Pod", Name: "x"}, Spans: []traces.Span{
		spanAt("1", "", "pod", 0, 10*time.Second),
		spanAt("2", "1", "kubelet.pull", 300*time.Millisecond, 9*time.Second),
		spanAt("3", "", "kube-proxy.endpoint", 11*time.Second, time.Second),
		spanAt("4", "", "kubelet.probe", time.Hour, time.Second),
		spanAt("5", "", "kubelet.stop", 2*time.Hour, time.Second),
		spanAt("6", "", "kubelet.delete", 2*time.Hour+time.Second, time.Second),
	}}, "here", 0)
	want := []string{"startup true 9.7s 2", "running false 1s 1", "shutdown true 2s 2"}
	for i, p := range s.Phases {
		if got := fmt.Sprintf("%s %t %s %d", p.Name, p.Done, p.Duration(), len(p.Steps)); got != want[i] {
			t.Errorf("phase %d: %s, want %s", i, got, want[i])
		}
	}
	// The creation has whole seconds, so that the startup begins with the first step.
	if !s.Phases[0].Start.Equal(zero().Add(300 * time.Millisecond)) {
		t.Errorf("begins at %s", s.Phases[0].Start)
	}
}

// TestTree: parents that are missing, circles and depth leave no step out.
func TestTree(t *testing.T) {
	t.Parallel()
	for name, spans := range map[string][]traces.Span{
		"circle":         {spanAt("1", "2", "a", 0, 1), spanAt("2", "1", "b", 0, 1)},
		"itself":         {spanAt("1", "1", "a", 0, 1)},
		"missing parent": {spanAt("1", "9", "a", 0, 1)},
		"same ID":        {spanAt("1", "", "a", 0, 1), spanAt("1", "", "b", 0, 1), spanAt("2", "1", "c", 0, 1)},
		"no ID":          {spanAt("", "", "a", 0, 1), spanAt("", "", "b", 0, 1)},
		"root is parent": {spanAt("1", "", "pod", 0, 9), spanAt("2", "1", "a", 0, 1), spanAt("3", "2", "b", 0, 1)},
		"deep":           deep(200),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New(&traces.Trace{Object: traces.Object{Kind: "Pod"}, Spans: spans}, "", 0)
			n := 0
			for _, p := range s.Phases {
				for _, step := range p.Steps {
					n += count(step)
				}
			}
			want := len(spans)
			if rootOf(spans, s.Object) >= 0 {
				want--
			}
			if n != want {
				t.Errorf("%d steps of %d", n, want)
			}
		})
	}
}

func deep(n int) (out []traces.Span) {
	for i := range n {
		out = append(out, spanAt(fmt.Sprint(i+1), fmt.Sprint(i), "s", 0, time.Duration(n-i)))
	}
	return out
}

// TestBounds: a story has so many steps and no more, and says what it lacks.
func TestBounds(t *testing.T) {
	t.Parallel()
	tr := &traces.Trace{DroppedSpans: 3}
	for i := range maxSteps + 7 {
		tr.Spans = append(tr.Spans, spanAt(fmt.Sprint(i), "", "s", time.Duration(i)*time.Microsecond, 1))
	}
	s := New(tr, "", 0)
	if n := len(s.Phases[0].Steps); n != maxSteps || len(s.Notes) != 2 {
		t.Errorf("%d steps, notes %q", n, s.Notes)
	}
	lines, hidden := s.Phases[0].Lines(true)
	if len(lines) > maxLines || hidden == 0 {
		t.Errorf("%d lines, %d steps hidden", len(lines), hidden)
	}
}

// TestGaps: gaps of one name have one line, with all their pieces.
func TestGaps(t *testing.T) {
	t.Parallel()
	tr := &traces.Trace{Object: traces.Object{Kind: "Pod"}}
	for i := range 5 {
		tr.Spans = append(tr.Spans, spanAt(fmt.Sprint(i), "", "kubelet.volumes", time.Duration(i)*10*time.Second,
			time.Second))
	}
	p := New(tr, "", 0).Phases[0]
	lines, _ := p.Lines(false)
	last := lines[len(lines)-1]
	if len(lines) != 4 || len(last.Critical) != 4 || last.Duration != 36*time.Second || last.OnPath() != last.Duration {
		t.Errorf("%d lines, the last one %+v", len(lines), last)
	}
}

// TestCreation: a startup begins with the request that made the object, which is found below the round that sent it.
// What the round did before is shown and is no part of the path.
func TestCreation(t *testing.T) {
	t.Parallel()
	of := func(component, trace string, s traces.Span) traces.Span {
		s.Component, s.TraceID = component, trace
		return s
	}
	const ms = time.Millisecond
	s := New(&traces.Trace{Object: traces.Object{Kind: "Pod", Name: "x"}, Spans: []traces.Span{
		spanAt("1", "", "pod", 0, 2*time.Second),
		of("kube-controller-manager", "t", spanAt("2", "1", "kube-controller-manager.replicaset", -5*time.Second,
			5900*ms)),
		of(apiserver, "t", spanAt("3", "1", "apiserver.create", 810*ms, 80*ms)),
		of(apiserver, "r", spanAt("4", "", "POST /pods", 800*ms, 95*ms)),
		spanAt("5", "1", "kubelet.pull", 1000*ms, 1000*ms),
	}}, "", 0)
	p := s.Phases[0]
	if !p.Start.Equal(zero().Add(800*ms)) || p.Duration() != 1200*ms {
		t.Errorf("begins at %s and takes %s", p.Start, p.Duration())
	}
	if len(p.Steps) != 2 || len(p.Steps[0].Steps) != 1 || len(p.Steps[0].Steps[0].Steps) != 1 {
		t.Errorf("the request is not inside the round, or the creation not inside the request: %+v", p.Steps)
	}
	if p.Steps[0].OnPath != 100*ms {
		t.Errorf("the round has %s of the path, want what it has after the request began", p.Steps[0].OnPath)
	}
	whole(t, p)
}
