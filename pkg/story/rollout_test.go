package story

import (
	"strings"
	"testing"
	"time"

	"bonsai/api/traces"
)

// TestJob: a Job's story begins with the Job, has the wait for its pods and the runs of their containers, and lasts
// until the Job is over.
func TestJob(t *testing.T) {
	t.Parallel()
	const s = time.Second
	object := traces.Object{Kind: "Job", Namespace: "store", Name: "import", UID: "u"}
	pod := func(now Now) *Story {
		run := spanAt("9", "", "kubelet.run", 2*s, 60*s)
		if now.Over == "" {
			run.Duration = 88 * s
		}
		story := New(life("Running", 2*s, run), "here", 0)
		now.At = zero().Add(90 * s)
		story.SetNow(now)
		return story
	}
	done, runs := pod(Now{Over: "succeeded", Ended: zero().Add(62 * s)}), pod(Now{Ready: true})
	crashes := pod(Now{Why: "CrashLoopBackOff"})
	made := New(&traces.Trace{Object: object,
		Spans: []traces.Span{spanAt("1", "", "apiserver.create", -s/2, s/10)}}, "", 0)
	asked := zero().Add(90 * s)
	for name, test := range map[string]struct {
		w    Workload
		own  []*Story
		of   []*Story
		want string
		path string
	}{
		"waited for its pod": {Workload{Begun: zero().Add(-30 * s), Failure: "no account", Finished: zero().Add(63 * s),
			How: "finished"}, nil, []*Story{done}, "finished after 1m33s", "no pod yet, kubelet.run, until it ended"},
		"no wait that whole seconds would tell": {Workload{Begun: zero().Add(-s / 2), Finished: zero().Add(63 * s),
			How: "finished"}, nil, []*Story{done}, "finished after 1m03s", "kubelet.run, until it ended"},
		"its request is known": {Workload{Begun: zero().Add(-s), Finished: zero().Add(63 * s), How: "finished"},
			[]*Story{made}, []*Story{done}, "finished after 1m04s", "no pod yet, kubelet.run, until it ended"},
		"failed": {Workload{Begun: zero().Add(-30 * s), Finished: zero().Add(63 * s), How: "failed",
			Reason: "BackoffLimitExceeded"}, nil, []*Story{done}, "failed after 1m33s; BackoffLimitExceeded",
			"no pod yet, kubelet.run, until it ended"},
		"runs": {Workload{Begun: zero()}, nil, []*Story{runs}, "not finished after 1m30s", "kubelet.run"},
		"between two pods": {Workload{Begun: zero()}, nil, []*Story{done}, "not finished after 1m30s",
			"kubelet.run, after the run of a container"},
		"crashes": {Workload{Begun: zero()}, nil, []*Story{crashes}, "not finished after 1m30s", "kubelet.run"},
		"no pod": {Workload{Begun: zero().Add(-30 * s), Failure: "no account"}, nil, nil,
			"not finished after 2m00s: no pod of it is there", "no pod yet"},
		"its pods are gone": {Workload{Begun: zero(), Finished: zero().Add(63 * s), How: "finished"}, nil, nil,
			"finished after 1m03s", "no step is known"},
	} {
		test.w.Object, test.w.At = object, asked
		story := Rollout(test.w, test.own, test.of)
		p := story.Phase(Startup)
		whole(t, p)
		var path []string
		for _, part := range Parts(p) {
			if p.Share(part.Duration) > 0.005 && part.Name != "scheduler.bind" && part.Name != "kubelet.start" {
				path = append(path, part.Name)
			}
		}
		if got := p.Headline(0); got != test.want || strings.Join(path, ", ") != test.path {
			t.Errorf("%s: %s, %q, want %s, %s", name, got, path, test.want, test.path)
		}
		asks := strings.Contains(strings.Join(story.Notes, " "), "kubectl why -n store job/import")
		if want := len(test.of) == 0 && test.w.Finished.IsZero(); asks != want {
			t.Errorf("%s: notes %q", name, story.Notes)
		}
	}
}

// TestNoPods: a workload whose pods cannot be made has that as a step. If nothing is known of a
// workload, its story names the command that knows more.
func TestNoPods(t *testing.T) {
	t.Parallel()
	w := Workload{Object: traces.Object{Kind: "Deployment", Namespace: "store", Name: "front"},
		At: zero().Add(90 * time.Second)}
	const note = "no pod of it is there: kubectl why -n store deployment/front says why"
	if s := Rollout(w, nil, nil); len(s.Phases) != 0 || strings.Join(s.Notes, "\n") != note {
		t.Errorf("%d phases, notes %q", len(s.Phases), s.Notes)
	}
	w.Begun, w.Failure = zero(), "exceeded quota"
	s := Rollout(w, nil, nil)
	if got, want := s.Phase(Startup).Headline(0), "not Ready for 1m30s: no pod of it is there"; got != want ||
		s.Phase(Startup).Steps[0].Error != "exceeded quota" || strings.Join(s.Notes, "\n") != note {
		t.Errorf("%s, notes %q", got, s.Notes)
	}
}

// TestRolloutNow: a rollout says how its pods are now.
func TestRolloutNow(t *testing.T) {
	t.Parallel()
	const s = time.Second
	pod := func(of *traces.Trace, now Now) *Story {
		story := New(of, "", 0)
		now.At = zero().Add(90 * s)
		story.SetNow(now)
		return story
	}
	good, waits := pod(life("Running", 5*s), Now{Ready: true}), pod(life("", 0), Now{Why: "RunContainerError"})
	lapsed := pod(life("Running", 5*s), Now{Why: "CrashLoopBackOff"})
	unknown := pod(life("", 0), Now{Ready: true})
	gone := New(life("", 0, deleted()...), "", 0)
	const why = "kubectl why -n default pod/web says why"
	for name, test := range map[string]struct {
		of         []*Story
		want, note string
	}{
		"good": {[]*Story{good, good}, "Ready after 5.00s", ""},
		"one lapsed": {[]*Story{good, lapsed}, "was Ready after 5.00s; not Ready now: 1 of 2 pods, CrashLoopBackOff",
			"web is not Ready now: " + why},
		"one waits": {[]*Story{good, waits}, "not Ready for 1m30s: RunContainerError; last step after 5.00s",
			"web is not Ready: " + why},
		"unknown": {[]*Story{good, unknown},
			"Ready now, but it is not known when it became so; last step after 5.00s", ""},
		"one was gone": {[]*Story{good, gone}, "not Ready, last step after 30.0s", ""},
	} {
		story := Rollout(Workload{Object: traces.Object{Kind: "StatefulSet"}}, nil, test.of)
		p := story.Phase(Startup)
		whole(t, p)
		if got := p.Headline(0); got != test.want || strings.Join(story.Notes, "\n") != test.note {
			t.Errorf("%s: %s, notes %q", name, got, story.Notes)
		}
	}
}
