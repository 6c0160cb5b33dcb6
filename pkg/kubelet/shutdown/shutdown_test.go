package shutdown

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
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

func pod(uid types.UID, priority int32, grace int64) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid},
		Spec: corev1.PodSpec{Priority: &priority, TerminationGracePeriodSeconds: &grace}}
}

// TestGroups: the example of
// https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#pod-priority-graceful-node-shutdown.
func TestGroups(t *testing.T) {
	t.Parallel()
	byPriority := []Period{{100000, 10 * time.Second}, {10000, 180 * time.Second}, {1000, 120 * time.Second},
		{0, 60 * time.Second}}
	pods := []*corev1.Pod{pod("critical", runtime.SystemCriticalPriority, 30), pod("b", 99999, 30), pod("d", 500, 30),
		pod("e", 1000, 30), pod("below", -5, 30)}
	show := func(periods []Period) string {
		var out []string
		for _, g := range groupPods(periods, pods) {
			for _, p := range g.Pods {
				out = append(out, fmt.Sprint(p.UID, " ", graceOf(g.Period, p)))
			}
		}
		return strings.Join(out, ", ")
	}
	if got, want := show(byPriority), "d 30s, below 30s, e 30s, b 30s, critical 10s"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := show(Periods(30*time.Second, 10*time.Second)),
		"b 20s, d 20s, e 20s, below 20s, critical 10s"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := graceOf(byPriority[1], pod("forever", 10000, math.MaxInt64)); got != 180*time.Second {
		t.Errorf("who asks for more than there is gets %s", got)
	}
	if Periods(0, 0) != nil || groupPods(nil, pods) != nil || longest(byPriority) != 370*time.Second {
		t.Error("without periods, or their sum:", longest(byPriority))
	}
}

// machine is a fake of the machine's manager.
type machine struct {
	mu     sync.Mutex
	notes  []string
	delay  time.Duration
	coming chan bool
	busy   bool // it is shutting down
}

func (m *machine) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

func (m *machine) took() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := strings.Join(m.notes, ", ")
	m.notes = nil
	return s
}

func (m *machine) Delay(context.Context) (time.Duration, error) { return m.delay, nil }

func (m *machine) Extend(_ context.Context, to time.Duration) error {
	m.note("extend %s", to)
	m.delay = to
	return nil
}

func (m *machine) Inhibit(context.Context) (Lock, error) {
	m.mu.Lock()
	busy := m.busy
	m.mu.Unlock()
	if busy {
		return nil, errors.New("the operation inhibition has been requested for is already running")
	}
	m.note("inhibit")
	return m, nil
}

func (m *machine) Release() error {
	m.note("release")
	return nil
}

func (m *machine) Watch(context.Context) (<-chan bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.coming, nil
}

// A shutdown ends the pods in their order, and is let go when they have ended; one that is called off leaves a ready
// node that holds up the next.
func TestShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &machine{delay: 5 * time.Second, coming: make(chan bool)}
		var mu sync.Mutex
		active := []*corev1.Pod{pod("web", 0, 3), pod("stubborn", 0, 300),
			pod("dns", runtime.SystemCriticalPriority, 30)}
		begun := time.Now()
		state := &State{}
		s, err := New(Config{State: state, Periods: Periods(30*time.Second, 10*time.Second),
			Log: slog.New(slog.DiscardHandler),
			Connect: func(context.Context) (Machine, func() error, error) {
				return m, func() error { m.note("closed"); return nil }, nil
			},
			Pods: func() []*corev1.Pod { mu.Lock(); defer mu.Unlock(); return slices.Clone(active) },
			End: func(uid types.UID, why runtime.Ending) bool {
				m.note("%s: end %s %s %s", time.Since(begun), uid, why.Reason, why.Grace)
				if uid != "stubborn" {
					time.AfterFunc(2*time.Second, func() {
						mu.Lock()
						defer mu.Unlock()
						active = slices.DeleteFunc(active, func(p *corev1.Pod) bool { return p.UID == uid })
					})
				}
				return true
			},
			Changed: func() { m.note("changed") }, Began: func(time.Time) {}, Over: func(time.Time) {}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		synctest.Wait()
		if got := m.took(); got != "extend 30s, inhibit" {
			t.Errorf("before: %s", got)
		}
		if state.Err() != nil || state.Refuse() != "" {
			t.Error("it is shutting down already")
		}
		m.coming <- true
		synctest.Wait()
		if state.Err() == nil || state.Refuse() == "" {
			t.Error("it is not shutting down")
		}
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if got, want := m.took(),
			"changed, 0s: end web Terminated 3s, 0s: end stubborn Terminated 20s, 20s: end dns Terminated 10s, release"; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		m.coming <- false
		synctest.Wait()
		if got := m.took(); got != "changed, inhibit" || state.Err() != nil {
			t.Errorf("called off: %s, %v", got, state.Err())
		}
		close(m.coming) // the connection is lost
		synctest.Wait()
		if got := m.took(); got != "release, closed" {
			t.Errorf("lost: %s", got)
		}
		m.mu.Lock()
		m.coming = make(chan bool)
		m.mu.Unlock()
		time.Sleep(2 * reconnect)
		synctest.Wait()
		if got := m.took(); got != "inhibit" {
			t.Errorf("again: %s", got)
		}
		m.coming <- true
		time.Sleep(30 * time.Second)
		synctest.Wait()
		m.took()
		m.mu.Lock()
		m.busy = true
		close(m.coming) // the connection is lost while the machine is shutting down
		m.coming = make(chan bool)
		m.mu.Unlock()
		time.Sleep(2 * reconnect)
		synctest.Wait()
		if got := m.took(); strings.Contains(got, "changed") || state.Err() == nil {
			t.Errorf("lost while it is shutting down: %s, %v", got, state.Err())
		}
		m.mu.Lock()
		m.busy = false // it was called off
		m.mu.Unlock()
		time.Sleep(2 * reconnect)
		synctest.Wait()
		if got := m.took(); got != "inhibit, changed" || state.Err() != nil {
			t.Errorf("called off while the connection was lost: %s, %v", got, state.Err())
		}
		cancel()
		close(m.coming)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
