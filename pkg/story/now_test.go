package story

import (
	"strings"
	"testing"
	"time"

	"bonsai/api/traces"
)

// TestNow: a startup says how its pod is now: one that was Ready and crashes is not well, and one that waits has waited
// until now, not until its last step.
func TestNow(t *testing.T) {
	t.Parallel()
	const s = time.Second
	asked := zero().Add(90 * s)
	for name, test := range map[string]struct {
		of       *traces.Trace
		now      Now
		want     string // the headline
		last     string // the last segment of the critical path
		notReady bool
	}{
		"ready": {life("Running", 5*s), Now{At: asked, Ready: true}, "Ready after 5.00s", "waiting to become Ready", false},
		"crashes": {life("Running", 5*s), Now{At: asked, Why: "CrashLoopBackOff (exit code 1)"},
			"was Ready after 5.00s; not Ready now: CrashLoopBackOff (exit code 1)", "waiting to become Ready", true},
		"was Ready and succeeded": {life("Running", 5*s), Now{At: asked, Over: "succeeded", Ended: zero().Add(60 * s)},
			"succeeded after 1m00s; Ready after 5.00s", "waiting to become Ready", false},
		"was Ready and was evicted": {life("Running", 5*s), Now{At: asked, Over: "failed"},
			"failed; Ready after 5.00s", "waiting to become Ready", false},
		"waits": {life("", 0), Now{At: asked, Why: "CreateContainerConfigError"},
			"not Ready for 1m30s: CreateContainerConfigError; last step after 2.00s",
			"not Ready: CreateContainerConfigError", true},
		"was Ready before, and nobody recorded when": {life("", 0), Now{At: asked, Why: "CrashLoopBackOff",
			Lost: zero().Add(60 * s)}, "was Ready; not Ready for 30.0s: CrashLoopBackOff",
			"not Ready: CrashLoopBackOff", true},
		"ready, and nobody recorded when": {life("", 0), Now{At: asked, Ready: true},
			"Ready now, but it is not known when it became so; last step after 2.00s", "kubelet.start", false},
		"clock behind": {life("", 0), Now{At: zero(), Why: "ContainerCreating"}, "not Ready for 2.00s: ContainerCreating",
			"kubelet.start", true},
		"failed, without a root": {life("", 0), Now{At: asked, Why: "Error", Over: "failed"},
			"not Ready, last step after 2.00s", "kubelet.start", false},
	} {
		story := New(test.of, "", 0)
		story.SetNow(test.now)
		p := story.Phase(Startup)
		whole(t, p)
		if got := p.Headline(0); got != test.want || p.Path[len(p.Path)-1].Name != test.last ||
			story.NotReady() != test.notReady {
			t.Errorf("%s: %s, the path ends with %q, not Ready %t", name, got, p.Path[len(p.Path)-1].Name,
				story.NotReady())
		}
	}
}

// TestSummarizeNow: a startup that is done and whose pod is not Ready now is no good one: it is counted and named, with
// who knows why.
func TestSummarizeNow(t *testing.T) {
	t.Parallel()
	const s = time.Second
	of := func(name string, of *traces.Trace, now Now) *Story {
		of.Object.Name = name
		story := New(of, "", 0)
		now.At = zero().Add(90 * s)
		story.SetNow(now)
		return story
	}
	all := []*Story{of("good", life("Running", 5*s), Now{Ready: true}),
		of("crashing", life("Running", 5*s), Now{Why: "CrashLoopBackOff"}),
		of("waiting", life("", 0), Now{Why: "ImagePullBackOff"}),
		of("job", life("Running", 5*s), Now{Over: "succeeded"})}
	r := Report{Title: "pods", Summary: Summarize(all, 0)}
	if got, want := r.Headline(), "pods: 3 startups, half of them within 5.00s, the slowest 5.00s; of them 1 is not Ready "+
		"now; 1 pod not Ready"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	want := "not Ready now: kubectl why -n default pod/crashing # CrashLoopBackOff\n" +
		"not Ready now: kubectl why -n default pod/waiting # ImagePullBackOff"
	if got := strings.Join(r.Summary.Asks(), "\n"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	unknown := Report{Title: "pods", Summary: Summarize([]*Story{of("web", life("", 0), Now{Ready: true})}, 0)}
	if got, want := unknown.Headline(), "pods: 0 startups; of 1 pod it is not known when it was Ready"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for range 4 {
		all = append(all, of("other", life("", 0), Now{Why: "Pending"}))
	}
	s2 := Summarize(all, 0)
	asks := s2.Asks()
	if want := "3 more pods are not Ready: kubectl why namespace/default"; len(asks) != 4 || asks[3] != want {
		t.Errorf("%q, want %s", asks, want)
	}
}
