package event

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type sink struct {
	mu      sync.Mutex
	created []*eventsv1.Event
	patched []int32
	gone    bool // the events that were created are not there any more
}

func (s *sink) CreateEvent(_ context.Context, e *eventsv1.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created, s.gone = append(s.created, e), false
	return nil
}

func (s *sink) PatchEvent(_ context.Context, _, _ string, series *eventsv1.EventSeries) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return apierrors.NewNotFound(eventsv1.Resource("events"), "p")
	}
	s.patched = append(s.patched, series.Count)
	return nil
}

func TestRepeatedEventsBecomeASeries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		r := New(s, "host", time.Now, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.Run(ctx)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "u"}}
		for range 10 {
			r.Event(pod, "sched", "Warning", "FailedScheduling", "Scheduling", "no room")
			time.Sleep(time.Minute)
		}
		r.Event(pod, "sched", "Normal", "Scheduled", "Binding", "done")
		synctest.Wait()
		if len(s.created) != 2 {
			t.Fatalf("%d events, want 2", len(s.created))
		}
		e := s.created[0]
		if e.ReportingController != "sched" || e.ReportingInstance != "sched-host" || e.Note != "no room" ||
			e.Regarding.UID != "u" || e.Type != "Warning" {
			t.Errorf("event %+v", e)
		}
		if got := fmt.Sprint(s.patched); got != "[2 7]" {
			t.Errorf("series counts written: %s, want [2 7]: at once and then every five minutes", got)
		}
	})
}

// TestASeriesThatIsGoneBeginsAnew: events expire and are deleted; what still holds is told again.
func TestASeriesThatIsGoneBeginsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		r := New(s, "host", time.Now, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.Run(ctx)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "u"}}
		tell := func() {
			r.Event(pod, "sched", "Warning", "FailedScheduling", "Scheduling", "no room")
			time.Sleep(10 * time.Minute)
			synctest.Wait()
		}
		tell()
		s.gone = true
		tell()
		tell()
		if len(s.created) != 2 || fmt.Sprint(s.patched) != "[2]" {
			t.Errorf("%d events made, want 2; counts %v, want [2]", len(s.created), s.patched)
		}
	})
}
