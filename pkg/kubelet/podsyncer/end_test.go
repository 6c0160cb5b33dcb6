package podsyncer

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/runtime"
)

// TestEndsAreCountedOnce: containers that end are, and not those of an earlier kubelet's time.
func TestEndsAreCountedOnce(t *testing.T) {
	t.Parallel()
	s, p := setup()
	name := onePod().Spec.Containers[0].Name
	end := func(id string, exit int32, at time.Time) {
		p.set(func(rt *runtime.PodStatus) {
			runs(rt)
			rt.Containers = append(rt.Containers,
				runtime.Container{Name: name, ID: runtime.ContainerID{Type: "containerd", ID: id},
					State: runtime.StateExited, ExitCode: exit, FinishedAt: at})
		})
	}
	end("earlier", 1, time.Now().Add(-time.Hour))
	for range 2 {
		if _, err := s.Sync(t.Context(), onePod()); err != nil {
			t.Fatal(err)
		}
	}
	end("now", 139, time.Now().Add(time.Hour))
	for range 2 {
		if _, err := s.Sync(t.Context(), onePod()); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.ends) != 1 || p.ends[0] != 139 {
		t.Errorf("counted %v", p.ends)
	}
}

// While containers use their grace period the status is kept fresh by what happens to them, and costs no looks
// otherwise.
func TestTerminate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p := setup()
		p.killing = make(chan struct{})
		runs(&p.rt)
		done := make(chan error)
		go func() { done <- s.Terminate(t.Context(), onePod(), 7*time.Second) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		expect(t, "at first", p, "readiness only, status Running ")
		for range 2 {
			s.cfg.Changes.Notify("u")
			s.cfg.Changes.Notify("other")
			synctest.Wait()
			expect(t, "after a change", p, "status Running ")
		}
		if len(s.states) != 1 {
			t.Error("a pod that is not known is remembered")
		}
		p.set(ended)
		close(p.killing)
		if err := <-done; err != nil {
			t.Error(err)
		}
		expect(t, "at the end", p, "kill 7s, probes-, release, status Succeeded ")
	})
}

// A pod counts as ended only when the runtime says so.
func TestTerminateFails(t *testing.T) {
	t.Parallel()
	s, p := setup()
	runs(&p.rt)
	if err := s.Terminate(t.Context(), onePod(),
		0); err == nil || err.Error() != "pod ns/p still has running containers" {
		t.Error(err)
	}
	expect(t, "containers that do not end", p, "readiness only, status Running , kill 0s, probes-")
	p.fail["kill"] = errors.New("hung")
	if err := s.Terminate(t.Context(), onePod(), 0); !errors.Is(err, p.fail["kill"]) {
		t.Error(err)
	}
	expect(t, "a kill that fails", p, "readiness only, status Running , kill 0s")
}

// What is left of a pod goes in an order in which nothing is lost that a step, tried again, needs.
func TestTheEnd(t *testing.T) {
	t.Parallel()
	s, p := setup()
	pod := onePod()
	p.fail["unprepare"] = errors.New("busy")
	if err := s.Cleanup(t.Context(), pod); !errors.Is(err, p.fail["unprepare"]) {
		t.Error(err)
	}
	expect(t, "what does not go", p, "unmount, unprepare")
	delete(p.fail, "unprepare")
	if err := s.Cleanup(t.Context(), pod); err != nil {
		t.Error(err)
	}
	expect(t, "cleanup", p, "unmount, unprepare, untrack")
	if err := s.Finish(t.Context(), pod); err != nil {
		t.Error(err)
	}
	expect(t, "a pod that ended by itself", p, "")
	pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	static := pod.DeepCopy()
	static.Annotations = map[string]string{runtime.AnnotationConfigSource: runtime.SourceFile}
	if err := errors.Join(s.Finish(t.Context(), pod), s.Finish(t.Context(), static)); err != nil {
		t.Error(err)
	}
	expect(t, "a deleted pod and a static one", p, "delete")
	s.state("u")
	runs(&p.rt)
	for _, what := range []string{"sandbox-", "container-", "directory-", "logs-"} {
		p.fail[what] = errors.New("busy")
		if err := s.Forget(t.Context(), pod); !errors.Is(err, p.fail[what]) || len(s.states) != 1 {
			t.Error(err, len(s.states))
		}
		expect(t, what+" does not go, the rest does", p, "sandbox- s1, container- c1, directory-, logs- ns p")
		delete(p.fail, what)
	}
	if err := s.Forget(t.Context(), pod); err != nil || len(s.states) != 0 {
		t.Error(err, len(s.states))
	}
	expect(t, "forgetting", p, "sandbox- s1, container- c1, directory-, logs- ns p, untrack, forget")
}
