package story

import (
	"strings"
	"testing"
	"time"

	"bonsai/api/traces"
)

// life is the trace of a pod whose container started after 2 s and that was deleted after 30 s. phase is the pod's when
// its root was recorded, "" for a trace without a root.
func life(phase string, readyAfter time.Duration, more ...traces.Span) *traces.Trace {
	const s = time.Second
	t := &traces.Trace{Object: traces.Object{Kind: "Pod", Namespace: "default", Name: "web"}}
	if phase != "" {
		root := spanAt("1", "", "pod", 0, readyAfter)
		root.Attributes = map[string]string{"k8s.pod.status.phase": phase}
		t.Spans = append(t.Spans, root)
	}
	t.Spans = append(t.Spans, spanAt("2", "1", "scheduler.bind", 0, s), spanAt("3", "1", "kubelet.start", s, s))
	t.Spans = append(t.Spans, more...)
	return t
}

// deleted are the last steps of a pod whose grace period of 27 s ran out.
func deleted() []traces.Span {
	const s = time.Second
	return []traces.Span{spanAt("4", "1", "kubelet.stop", 30*s, 27*s), spanAt("5", "1", "kubelet.unsandbox", 57*s, s/4),
		spanAt("6", "1", "kubelet.volumes", 57*s+s/4, s/4), spanAt("7", "1", "kubelet.status", 57*s+s/4, s/4),
		spanAt("8", "1", "kubelet.delete", 58*s, s)}
}

// TestEndings: a pod that ended before it was Ready is not called Ready, and its end is a phase of its own.
func TestEndings(t *testing.T) {
	t.Parallel()
	const s = time.Second
	again := spanAt("1", "", "pod", 0, 58*s)
	again.Attributes = map[string]string{"k8s.pod.status.phase": "Failed"}
	dropped := life("", 0, deleted()...)
	dropped.DroppedSpans = 1
	for name, test := range map[string]struct {
		of   *traces.Trace
		want string // the headlines of its phases
	}{
		"ready, then deleted": {life("Running", 5*s, deleted()...), "Ready after 5.00s, gone after 29.0s"},
		"never ready, deleted": {life("Failed", 57*s+s/2, deleted()...),
			"Not Ready in 30.0s; it was deleted then, gone after 29.0s"},
		"never ready, exits with 0 when deleted": {life("Succeeded", 57*s+s/2, deleted()...),
			"Not Ready in 30.0s; it was deleted then, gone after 29.0s"},
		"deleted, without a last status": {life("", 0, deleted()...),
			"Not Ready in 30.0s; it was deleted then, gone after 29.0s"},
		"the root was dropped": {dropped, "not Ready, last step after 2.00s, gone after 29.0s"},
		"evicted, still there": {life("Failed", 40*s, spanAt("4", "1", "kubelet.stop", 30*s, 9*s)),
			"failed after 30.0s, shutting down, last step after 9.00s"},
		"evicted, deleted an hour later": {life("Failed", 40*s, spanAt("4", "1", "kubelet.stop", 30*s, 9*s),
			spanAt("5", "1", "kubelet.delete", time.Hour, s)), "failed after 30.0s, gone after 59m31s"},
		"a short job":      {life("Succeeded", 9*s), "succeeded after 9.00s"},
		"a new sandbox":    {life("Failed", 40*s, spanAt("4", "1", "kubelet.stop", 5*s, s), spanAt("5", "1", "kubelet.start", 7*s, s)), "failed after 40.0s"},
		"told twice":       {life("Running", 5*s, again), "Ready after 5.00s"},
		"not Ready as yet": {life("", 0), "not Ready, last step after 2.00s"},
	} {
		story := New(test.of, "", 0)
		var heads []string
		for _, p := range story.Phases {
			heads = append(heads, p.Headline(0))
			if len(p.Path) > 0 {
				whole(t, p)
			}
			for _, seg := range p.Path {
				if strings.Contains(seg.Name, "become Ready") != (test.of.Spans[0].Attributes["k8s.pod.status.phase"] ==
					"Running" && p.Name == Startup && seg.Gap) {
					t.Errorf("%s: the path of the %s has %q", name, p.Name, seg.Name)
				}
			}
		}
		if got := strings.Join(heads, ", "); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestSummarizeDeleted: a pod that was never Ready is no startup, and its grace period is in no percentile.
func TestSummarizeDeleted(t *testing.T) {
	t.Parallel()
	const s = time.Second
	var all []*Story
	for _, of := range []*traces.Trace{life("Running", 5*s), life("Failed", 57*s+s/2, deleted()...),
		life("Failed", 57*s+s/2, deleted()...), life("Succeeded", 9*s)} {
		all = append(all, New(of, "", 0))
	}
	r := Report{Title: "pods", Summary: Summarize(all, 0)}
	if got, want := r.Headline(), "pods: 1 startup within 5.00s; 2 pods not Ready; 1 pod ended; of them 2 are gone"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	rollout := Rollout(Workload{Object: traces.Object{Kind: "StatefulSet"}}, nil, all[:2]).Phase(Startup)
	if rollout.Done || rollout.Duration() != 30*s {
		t.Errorf("a rollout with a pod that was never Ready: %s", rollout.Headline(0))
	}
}

// TestRolloutNotReady: the time of a pod that is not Ready has no step, so that the rollout says what is the matter and
// who knows why.
func TestRolloutNotReady(t *testing.T) {
	t.Parallel()
	const s = time.Second
	waiting := New(life("", 0, spanAt("4", "1", "kubelet.status", 29*s, s)), "", 0)
	second := New(life("", 0, spanAt("4", "1", "kubelet.status", 28*s, s)), "", 0)
	second.Object.Name = "second"
	for name, test := range map[string]struct {
		of         []*Story
		path, note string
	}{
		"one": {[]*Story{waiting}, "web, not Ready", "web is not Ready: kubectl why -n default pod/web says why"},
		"two": {[]*Story{waiting, second}, "web, not Ready",
			"2 pods are not Ready: kubectl why -n default pod/web says why the first is not"},
		"none": {[]*Story{New(life("Running", 5*s), "", 0)}, "web, between its steps", ""},
	} {
		rollout := Rollout(Workload{Object: traces.Object{Kind: "Deployment", Name: "web"}}, nil, test.of)
		var longest Segment
		for _, seg := range Parts(rollout.Phase(Startup)) {
			if seg.Duration > longest.Duration {
				longest = seg
			}
		}
		if longest.Name != test.path || strings.Join(rollout.Notes, "\n") != test.note {
			t.Errorf("%s: %q takes longest, notes %q", name, longest.Name, rollout.Notes)
		}
	}
}
