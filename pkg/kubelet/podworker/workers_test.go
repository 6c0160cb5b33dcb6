package podworker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// steps records what is done to pods.
type steps struct {
	mu        sync.Mutex
	log       []string
	timed     []string // what was timed: start, create, update, sync, kill
	sync      func(ctx context.Context, pod *corev1.Pod) (Outcome, error)
	terminate func(ctx context.Context, pod *corev1.Pod, grace time.Duration) error
}

func (s *steps) note(format string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, a...))
}

func (s *steps) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.log, " ")
}

func (s *steps) Sync(ctx context.Context, p *corev1.Pod) (Outcome, error) {
	s.note("sync:%s", p.UID)
	if s.sync != nil {
		return s.sync(ctx, p)
	}
	return Outcome{}, nil
}

func (s *steps) Terminate(ctx context.Context, p *corev1.Pod, grace time.Duration) error {
	s.note("terminate:%s:%s", p.UID, grace)
	if s.terminate != nil {
		return s.terminate(ctx, p, grace)
	}
	return nil
}

func (s *steps) Cleanup(_ context.Context, p *corev1.Pod) error {
	s.note("cleanup:%s", p.UID)
	return nil
}
func (s *steps) Finish(_ context.Context, p *corev1.Pod) error {
	s.note("finish:%s", p.UID)
	return nil
}
func (s *steps) Forget(_ context.Context, p *corev1.Pod) error {
	s.note("forget:%s", p.UID)
	return nil
}

// WorkerStarted and WorkerStep are not noted with the steps.
func (s *steps) WorkerStarted(*corev1.Pod, time.Duration)        { s.time("start", 0) }
func (s *steps) WorkerStep(operation string, took time.Duration) { s.time(operation, took) }

func (s *steps) time(what string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timed = append(s.timed, what+" "+took.String())
}

// Each step is timed by what it was for.
func TestTimes(t *testing.T) {
	t.Parallel()
	s := &steps{sync: func(context.Context, *corev1.Pod) (Outcome, error) {
		time.Sleep(time.Second) // of the bubble's time
		return Outcome{}, nil
	}}
	run(t, s, func(w *Workers) {
		p := pod("u")
		w.Update(p)
		time.Sleep(2 * time.Second)
		w.Wake(p.UID)
		time.Sleep(2 * time.Second)
		w.Update(p.DeepCopy())
		time.Sleep(2 * time.Second)
		w.Update(deleted(p, 1))
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if got, want := strings.Join(s.timed, ", "), "start 0s, create 1s, sync 1s, update 1s, kill 0s"; got != want {
			t.Errorf("timed %s, want %s", got, want)
		}
	})
}

func pod(uid types.UID) *corev1.Pod {
	grace := int64(30)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: uid},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace}}
}

// static is a pod of a manifest.
func static(uid types.UID) *corev1.Pod {
	p := pod(uid)
	p.Annotations = map[string]string{runtime.AnnotationConfigSource: runtime.SourceFile}
	return p
}

func deleted(p *corev1.Pod, grace int64) *corev1.Pod {
	p = p.DeepCopy()
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, &grace
	return p
}

// run gives the test a running set of workers in a bubble of its own time.
func run(t *testing.T, s *steps, test func(w *Workers)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := New(func(p *corev1.Pod) { s.note("return:%s", p.UID) }, s, slog.New(slog.NewTextHandler(io.Discard, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx, s) }()
		synctest.Wait()
		test(w)
		cancel()
		<-done
	})
}

func expect(t *testing.T, s *steps, want string) {
	t.Helper()
	synctest.Wait()
	if got := s.text(); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestLifeAndDeath(t *testing.T) {
	t.Parallel()
	s := &steps{}
	run(t, s, func(w *Workers) {
		w.Update(pod("a"))
		expect(t, s, "sync:a")
		w.Wake("a")
		expect(t, s, "sync:a sync:a")
		w.Update(deleted(pod("a"), 5))
		expect(t, s, "sync:a sync:a terminate:a:5s cleanup:a finish:a")
		w.Remove(deleted(pod("a"), 5))
		expect(t, s, "sync:a sync:a terminate:a:5s cleanup:a finish:a forget:a")
		if _, ok := w.state("a"); ok {
			t.Error("the worker is still there")
		}
	})
}

func TestEndedPodRestsUntilDeleted(t *testing.T) {
	t.Parallel()
	s := &steps{sync: func(context.Context, *corev1.Pod) (Outcome, error) { return Outcome{Ended: true}, nil }}
	run(t, s, func(w *Workers) {
		w.Update(pod("a"))
		expect(t, s, "sync:a terminate:a:30s cleanup:a finish:a")
		w.Update(deleted(pod("a"), 0))
		expect(t, s, "sync:a terminate:a:30s cleanup:a finish:a finish:a")
	})
}

func TestDeletionInterruptsSync(t *testing.T) {
	t.Parallel()
	s := &steps{sync: func(ctx context.Context, _ *corev1.Pod) (Outcome, error) {
		<-ctx.Done()
		return Outcome{}, ctx.Err()
	}}
	run(t, s, func(w *Workers) {
		w.Update(pod("a"))
		expect(t, s, "sync:a")
		w.Remove(pod("a"))
		expect(t, s, "sync:a terminate:a:30s cleanup:a forget:a")
	})
}

func TestShorterGraceInterruptsTermination(t *testing.T) {
	t.Parallel()
	s := &steps{terminate: func(ctx context.Context, _ *corev1.Pod, grace time.Duration) error {
		if grace > time.Second {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}}
	run(t, s, func(w *Workers) {
		w.Update(deleted(pod("a"), 60))
		expect(t, s, "terminate:a:1m0s")
		w.Update(deleted(pod("a"), 0))
		expect(t, s, "terminate:a:1m0s terminate:a:1s cleanup:a finish:a")
	})
}

func TestErrorsAreRetriedWithBackOff(t *testing.T) {
	t.Parallel()
	s := &steps{}
	s.sync = func(context.Context, *corev1.Pod) (Outcome, error) {
		if strings.Count(s.text(), "sync") < 3 {
			return Outcome{}, errors.New("no")
		}
		return Outcome{Wake: time.Now().Add(time.Minute)}, nil
	}
	run(t, s, func(w *Workers) {
		w.Update(pod("a"))
		expect(t, s, "sync:a")
		time.Sleep(retryMin)
		expect(t, s, "sync:a sync:a")
		time.Sleep(2 * retryMin)
		expect(t, s, "sync:a sync:a sync:a")
		time.Sleep(time.Minute)
		expect(t, s, "sync:a sync:a sync:a sync:a")
	})
}

func TestPanicIsAnError(t *testing.T) {
	t.Parallel()
	s := &steps{}
	s.sync = func(context.Context, *corev1.Pod) (Outcome, error) {
		if strings.Count(s.text(), "sync") == 1 {
			panic("oh")
		}
		return Outcome{}, nil
	}
	run(t, s, func(w *Workers) {
		w.Update(pod("a"))
		time.Sleep(retryMin)
		expect(t, s, "sync:a sync:a")
	})
}

func TestStaticPodWaitsForItsPredecessor(t *testing.T) {
	t.Parallel()
	s := &steps{}
	run(t, s, func(w *Workers) {
		block := make(chan struct{}) // of the bubble
		s.terminate = func(_ context.Context, p *corev1.Pod, _ time.Duration) error {
			if p.UID == "old" {
				<-block
			}
			return nil
		}
		w.Update(static("old"))
		expect(t, s, "sync:old")
		w.Remove(static("old"))
		w.Update(static("new"))
		expect(t, s, "sync:old terminate:old:30s")
		close(block)
		synctest.Wait()
		if got := s.text(); !strings.Contains(got, "cleanup:old") ||
			!strings.HasSuffix(strings.ReplaceAll(got, " forget:old", ""), "sync:new") {
			t.Errorf("got %s", got)
		}
	})
}

// TestEndedWithGrace: a Sync that ends a pod may say how long its containers get.
func TestEndedWithGrace(t *testing.T) {
	t.Parallel()
	grace := 5 * time.Second
	s := &steps{sync: func(context.Context, *corev1.Pod) (Outcome, error) {
		return Outcome{Ended: true, Grace: &grace}, nil
	}}
	run(t, s, func(w *Workers) {
		w.Update(pod("a"))
		expect(t, s, "sync:a terminate:a:5s cleanup:a finish:a")
		grace = 0 // is none, not the pod's own
		w.Update(pod("b"))
		expect(t, s, "sync:a terminate:a:5s cleanup:a finish:a sync:b terminate:b:1s cleanup:b finish:b")
	})
}

// A grace period of more than a Duration holds is a very long one, not the shortest.
func TestAVeryLongGracePeriod(t *testing.T) {
	t.Parallel()
	s := &steps{}
	run(t, s, func(w *Workers) {
		w.Update(deleted(pod("a"), 10_000_000_000))
		expect(t, s, "terminate:a:876000h0m0s cleanup:a finish:a")
	})
}

// A termination that fails is tried again with what is left of the grace period, not with all of it.
func TestTheGracePeriodBeginsOnce(t *testing.T) {
	t.Parallel()
	s := &steps{}
	s.terminate = func(ctx context.Context, _ *corev1.Pod, grace time.Duration) error {
		select {
		case <-ctx.Done():
		case <-time.After(min(grace, 8*time.Second)):
		}
		if grace > 0 {
			return errors.New("rpc error: code = Unavailable")
		}
		return nil
	}
	run(t, s, func(w *Workers) {
		w.Update(deleted(pod("a"), 12))
		time.Sleep(time.Minute)
		expect(t, s, "terminate:a:12s terminate:a:3.5s terminate:a:0s cleanup:a finish:a")
	})
	s.log = nil
	run(t, s, func(w *Workers) {
		w.Update(deleted(pod("b"), 60))
		time.Sleep(time.Second)
		w.Update(deleted(pod("b"), 5)) // sooner, from now on
		time.Sleep(time.Minute)
		expect(t, s, "terminate:b:1m0s terminate:b:5s terminate:b:0s cleanup:b finish:b")
	})
}

// What is left of an edited manifest by an earlier life of the kubelet ends before the new pod begins.
func TestAStaticPodWaitsForAnOrphanOfItsName(t *testing.T) {
	t.Parallel()
	s := &steps{terminate: func(context.Context, *corev1.Pod, time.Duration) error {
		time.Sleep(5 * time.Second)
		return nil
	}}
	run(t, s, func(w *Workers) {
		w.Remove(static("old"))
		w.Update(static("new"))
		time.Sleep(4 * time.Second)
		expect(t, s, "terminate:old:30s")
		time.Sleep(2 * time.Second)
		if got := strings.ReplaceAll(s.text(), " forget:old", ""); got != "terminate:old:30s cleanup:old sync:new" {
			t.Error(got)
		}
	})
}

// A Sync that waits for something is ended when that has become pointless; the end of the pod is not hurried by it.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	s := &steps{sync: func(ctx context.Context, _ *corev1.Pod) (Outcome, error) {
		<-ctx.Done()
		return Outcome{}, ctx.Err()
	}}
	s.terminate = func(ctx context.Context, _ *corev1.Pod, _ time.Duration) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Second):
			return nil
		}
	}
	run(t, s, func(w *Workers) {
		w.Update(pod("a"))
		expect(t, s, "sync:a")
		w.Interrupt("a")
		expect(t, s, "sync:a sync:a")
		w.Update(deleted(pod("a"), 9))
		expect(t, s, "sync:a sync:a terminate:a:9s")
		w.Interrupt("a")
		w.Interrupt("nobody")
		time.Sleep(6 * time.Second)
		expect(t, s, "sync:a sync:a terminate:a:9s cleanup:a finish:a")
	})
}
