package queue

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins/defaultbinder"
	"bonsai/pkg/scheduler/plugins/noderesources"
	"bonsai/pkg/scheduler/plugins/prioritysort"
	"bonsai/pkg/scheduler/plugins/schedulinggates"
	"bonsai/pkg/scheduler/profile"
)

func pod(name string, priority int32, gates ...string) *model.PodInfo {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{Priority: &priority}}
	for _, g := range gates {
		p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: g})
	}
	return model.NewPodInfo(p)
}

func newQueue(t *testing.T) *Queue {
	t.Helper()
	p, err := profile.New("s", []profile.Enabled{{Plugin: prioritysort.Plugin{}}, {Plugin: schedulinggates.Plugin{}},
		{Plugin: noderesources.Fit{}}, {Plugin: defaultbinder.Plugin{}}})
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Profile: func(*model.PodInfo) *profile.Profile { return p }, Less: p.Sort.Less, Now: time.Now})
}

func pop(t *testing.T, q *Queue) *framework.QueuedPod {
	t.Helper()
	p, ok := q.Pop(t.Context())
	if !ok {
		t.Fatal("Pop ended")
	}
	return p
}

var (
	byFit   = map[string]bool{noderesources.FitName: true}
	podGone = clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete}
	podCame = clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Add}
)

func TestHigherPriorityThenOlderFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		for _, p := range []*model.PodInfo{pod("old", 0), pod("urgent", 10), pod("young", 0)} {
			q.Add(p)
			time.Sleep(time.Millisecond)
		}
		var got []string
		for range 3 {
			got = append(got, pop(t, q).Pod.Name)
		}
		if want := []string{"urgent", "old", "young"}; !slices.Equal(got, want) {
			t.Errorf("order %v, want %v", got, want)
		}
	})
}

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.Add(pod("p", 0))
		p := pop(t, q)
		for i, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
			begin := time.Now()
			q.Requeue(p, nil, nil, true)
			if again := pop(t, q); again.Attempts != i+2 {
				t.Errorf("attempt %d, want %d", again.Attempts, i+2)
			}
			if waited := time.Since(begin); waited != want*time.Second {
				t.Errorf("failure %d: waited %s, want %ds", i+1, waited, want)
			}
		}
	})
}

func TestOnlyHelpfulEventsWake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.Add(pod("p", 0))
		q.Requeue(pop(t, q), byFit, nil, false)
		q.Moved(podCame)
		if c := q.Counts(); c.Unschedulable != 1 {
			t.Fatalf("after an event that cannot help: %+v", c)
		}
		q.Moved(podGone)
		q.Add(pod("other", 0))
		if p := pop(t, q); p.Pod.Name != "other" {
			t.Fatalf("popped %s, which must wait out its back-off", p.Pod.Name)
		}
		if c := q.Counts(); c.Backoff != 1 {
			t.Fatalf("after an event that may help: %+v, want the pod in back-off", c)
		}
	})
}

// TestBackoffEndsEarlyWhenNothingIsActive: KEP-5142, pop from back-off when the active queue is empty; the most
// important of those whose back-off ends in the same second first.
func TestBackoffEndsEarlyWhenNothingIsActive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		for _, p := range []*model.PodInfo{pod("low", 0), pod("high", 10)} {
			q.Add(p)
		}
		for range 2 {
			q.Requeue(pop(t, q), byFit, nil, false)
			time.Sleep(time.Millisecond)
		}
		q.Add(pod("broken", 100))
		q.Requeue(pop(t, q), nil, nil, true)
		q.Moved(podGone)
		q.Add(pod("new", 0))
		begin := time.Now()
		var got []string
		for range 3 {
			got = append(got, pop(t, q).Pod.Name)
		}
		if want := []string{"new", "high", "low"}; !slices.Equal(got, want) || time.Since(begin) != 0 {
			t.Errorf("%v after %s, want %v at once", got, time.Since(begin), want)
		}
		if p := pop(t, q); p.Pod.Name != "broken" || time.Since(begin) != time.Second {
			t.Errorf("%s after %s: what failed for an error waits out its back-off", p.Pod.Name, time.Since(begin))
		}
	})
}

// holder is a PreEnqueue plug-in that holds pods back while it is told to.
type holder struct{ hold bool }

func (*holder) Name() string { return "holder" }
func (h *holder) PreEnqueue(*model.PodInfo) *framework.Status {
	if h.hold {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, "held")
	}
	return nil
}

// TestRetryAndUngate: a pod that is to be tried again waits out its back-off, also when nothing else is to be tried;
// one that was held back does not.
func TestRetryAndUngate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &holder{}
		p, err := profile.New("s",
			[]profile.Enabled{{Plugin: prioritysort.Plugin{}}, {Plugin: h}, {Plugin: noderesources.Fit{}},
				{Plugin: defaultbinder.Plugin{}}})
		if err != nil {
			t.Fatal(err)
		}
		q := New(Config{Profile: func(*model.PodInfo) *profile.Profile { return p }, Less: p.Sort.Less, Now: time.Now})
		expect := func(what string, want Counts) {
			t.Helper()
			if c := q.Counts(); c != want {
				t.Errorf("%s: %+v, want %+v", what, c, want)
			}
		}
		q.Add(pod("p", 0))
		q.Requeue(pop(t, q), byFit, nil, false)
		q.Ungate("p")
		expect("nothing held it back", Counts{Unschedulable: 1})
		q.Retry("p")
		expect("in back-off", Counts{Backoff: 1})
		after := func(want time.Duration) *framework.QueuedPod {
			t.Helper()
			begin := time.Now()
			p := pop(t, q)
			if d := time.Since(begin); d < want {
				t.Errorf("tried again after %s, although nothing else is: want %s", d, want)
			}
			return p
		}
		flying := after(time.Second)
		q.Retry("p")
		q.Requeue(flying, byFit, nil, false)
		again := after(2 * time.Second)
		if again.Attempts != 3 {
			t.Errorf("in flight: attempt %d", again.Attempts)
		}

		q.Requeue(again, byFit, nil, false)
		h.hold = true
		q.Moved(podGone)
		q.next()
		expect("held back", Counts{Gated: 1})
		q.Ungate("p")
		expect("still held back", Counts{Gated: 1})
		q.Retry("p")
		expect("held back, and in back-off", Counts{Backoff: 1})
		time.Sleep(4 * time.Second)
		q.next()
		expect("held back again", Counts{Gated: 1})
		h.hold = false
		q.Ungate("p")
		expect("no longer held back", Counts{Active: 1})
	})
}

func TestEventsDuringTheFlightCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.Add(pod("p", 0))
		p := pop(t, q)
		q.Moved(podGone)
		q.Requeue(p, byFit, nil, false)
		if c := q.Counts(); c.Backoff != 1 || c.InFlight != 0 {
			t.Errorf("%+v, want the pod in back-off: room became free while it was being scheduled", c)
		}
	})
}

// TestOwnRoomHelpsOthersOnly: a pod that was refused after it had been assumed on a node must not be tried again and
// again because it left that node.
func TestOwnRoomHelpsOthersOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.Add(pod("p", 0))
		q.Add(pod("q", 0))
		p, other := pop(t, q), pop(t, q)
		q.Moved(clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete, Old: p.PodInfo})
		q.Requeue(p, byFit, nil, false)
		q.Requeue(other, byFit, nil, false)
		if c := q.Counts(); c.Unschedulable != 1 || c.Backoff != 1 {
			t.Errorf("%+v", c)
		}
	})
}

func TestDeletedInFlightDoesNotComeBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.Add(pod("p", 0))
		p := pop(t, q)
		q.Delete("p")
		q.Requeue(p, nil, nil, true)
		if c := q.Counts(); c != (Counts{}) {
			t.Errorf("%+v, want nothing", c)
		}
	})
}

func TestGatedPodWaitsForItsGates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.Add(pod("p", 0, "g"))
		q.Moved(podGone)
		time.Sleep(time.Hour)
		if c := q.Counts(); c.Gated != 1 || c.Active != 0 {
			t.Fatalf("%+v, want it gated", c)
		}
		q.Update(pod("p", 0), clusterevent.Event{Kind: clusterevent.TargetPod, Action: clusterevent.UpdateGates})
		if p := pop(t, q); p.Pod.Name != "p" || p.Gated != "" {
			t.Errorf("popped %+v", p)
		}
	})
}

func TestForgottenPodIsTriedAgainAfterFiveMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.Add(pod("p", 0))
		q.Requeue(pop(t, q), byFit, nil, false)
		begin := time.Now()
		pop(t, q)
		if d := time.Since(begin); d != 5*time.Minute {
			t.Errorf("tried again after %s", d)
		}
	})
}

func TestPopEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := newQueue(t).Pop(ctx); ok {
		t.Error("Pop returned a pod")
	}
}

func TestStatusUpdateDoesNotWake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.Add(pod("p", 0))
		q.Requeue(pop(t, q), byFit, nil, false)
		q.Update(pod("p", 0), clusterevent.Event{Kind: clusterevent.TargetPod})
		if c := q.Counts(); c.Unschedulable != 1 {
			t.Errorf("%+v: our own condition must not wake the pod", c)
		}
	})
}

// TestLongFlightKeepsTheLogBounded: events of hours do not pile up while one pod waits in flight. What is forgotten
// counts as help for it, and for it only: a pod that took off later lands by what it missed.
func TestLongFlightKeepsTheLogBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.Add(pod("long", 0))
		long := pop(t, q)
		for range 3*maxLog + 5 {
			q.Moved(podCame) // no help for what does not fit
			if n := len(q.log.events); n > maxLog {
				t.Fatalf("%d events are remembered, want %d at most", n, maxLog)
			}
		}
		q.Add(pod("late", 0))
		late := pop(t, q)
		q.Moved(podCame)
		q.Requeue(late, byFit, nil, false)
		if got, want := q.Counts(), (Counts{Unschedulable: 1, InFlight: 1}); got != want {
			t.Errorf("after a flight whose events are all remembered: %+v, want %+v", got, want)
		}
		q.Requeue(long, byFit, nil, false)
		if got, want := q.Counts(), (Counts{Unschedulable: 1, Backoff: 1}); got != want {
			t.Errorf("after a flight some of whose events are forgotten: %+v, want %+v", got, want)
		}
		if n := len(q.log.events); n != 0 {
			t.Errorf("%d events are remembered while nothing is in flight", n)
		}
	})
}
