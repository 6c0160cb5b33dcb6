package profile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/pkg/scheduler/framework"
)

// TestPermit plays what may happen to a pod that two plug-ins hold back, one for a minute and one for an hour.
func TestPermit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		act  func(w *WaitingPod, cancel func())
		want string
		code framework.Code
		took time.Duration
	}{
		{"both allow", func(w *WaitingPod, _ func()) { w.Allow("A"); w.Allow("B") }, "", framework.Success, 0},
		{"who did not ask has no say", func(w *WaitingPod, _ func()) {
			w.Allow("C")
			w.Allow("A")
		}, "rejected due to timeout after waiting 1m0s", framework.Unschedulable, time.Minute},
		{"one refuses", func(w *WaitingPod, _ func()) {
			w.Allow("A")
			w.Reject("B", "no quota")
		}, "no quota", framework.Unschedulable, 0},
		{"the first refusal counts", func(w *WaitingPod, _ func()) {
			w.Reject("B", "no quota")
			w.Reject("A", "late")
			w.Allow("A")
			w.Allow("B")
		}, "no quota", framework.Unschedulable, 0},
		{"nobody says anything", func(*WaitingPod, func()) {}, "rejected due to timeout after waiting 1m0s",
			framework.Unschedulable, time.Minute},
		{"the scheduler ends", func(_ *WaitingPod, cancel func()) { cancel() }, "context canceled", framework.Error, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				wait := framework.NewStatus(framework.Wait)
				p := profileOf(t, &fake{name: "A", status: wait, wait: time.Hour},
					&fake{name: "B", status: wait, wait: time.Minute}, &fake{name: "C"})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				pod, start := podWith("p"), time.Now()
				st, timeout := p.RunPermit(ctx, framework.NewCycleState(), pod, "n")
				if st == nil || st.Code != framework.Wait || timeout != time.Minute {
					t.Fatalf("Permit: %+v, at most %v, want the shorter wait", st, timeout)
				}
				done := make(chan *framework.Status)
				go func() { done <- p.WaitOnPermit(ctx, pod, timeout) }()
				synctest.Wait()
				c.act(p.WaitingPod("p"), cancel)
				st = <-done
				if st.Message() != c.want || !st.IsSuccess() && st.Code != c.code ||
					st.IsSuccess() != (c.code == framework.Success) {
					t.Errorf("%+v, want %q with code %d", st, c.want, c.code)
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("waited %v, want %v", took, c.took)
				}
				if p.WaitingPod("p") != nil {
					t.Error("the pod still counts as waiting")
				}
			})
		})
	}
}

func TestNobodyWaits(t *testing.T) {
	t.Parallel()
	p := profileOf(t, &fake{name: "A"})
	if st, _ := p.RunPermit(t.Context(), framework.NewCycleState(), podWith("p"), "n"); st != nil {
		t.Errorf("everyone allowed at once: %+v", st)
	}
	if st := p.WaitOnPermit(t.Context(), podWith("p"), time.Hour); !st.IsSuccess() {
		t.Errorf("waiting without need: %+v", st)
	}
	broken := errors.New("broken")
	p = profileOf(t, &fake{name: "A", status: framework.NewStatus(framework.Wait), wait: time.Hour},
		&fake{name: "B", status: framework.AsStatus(broken)})
	if st, _ := p.RunPermit(t.Context(), framework.NewCycleState(), podWith("p"),
		"n"); !errors.Is(st.AsError(), broken) || st.AsError().Error() != "plugin B: broken" {
		t.Errorf("an error beside a wait: %v", st.AsError())
	}
	if p.WaitingPod("p") != nil {
		t.Error("the pod waits although a plug-in failed")
	}
}
