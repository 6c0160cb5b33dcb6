package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testLoop(workers int, f Reconcile[string]) *Loop[string] {
	return NewLoop(LoopConfig{Name: "test", Workers: workers, Log: slog.New(slog.DiscardHandler)}, f)
}

// TestLoopOutcomes runs one key through each outcome of Reconcile and counts the calls over an hour.
func TestLoopOutcomes(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	ending := apierrors.NewForbidden(corev1.Resource("pods"), "p", boom)
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := []struct {
		name string
		f    Reconcile[string]
		want func(calls int) bool
	}{
		{"done", func(context.Context, string) (Result, error) {
			return Result{}, nil
		}, func(n int) bool { return n == 1 }},
		{"terminal", func(context.Context, string) (Result, error) {
			return Result{}, TerminalError(boom)
		}, func(n int) bool { return n == 1 }},
		{"namespace is ending", func(context.Context, string) (Result, error) {
			return Result{}, errors.Join(nil, fmt.Errorf("creating: %w", ending))
		}, func(n int) bool { return n == 1 }},
		{"after", func(context.Context, string) (Result, error) {
			return Result{RequeueAfter: 10 * time.Minute}, nil
		}, func(n int) bool { return n >= 6 && n <= 7 }},
		{"error", func(context.Context, string) (Result, error) {
			return Result{}, boom
		}, func(n int) bool { return n > 60 && n < 80 }},
		{"backoff", func(context.Context, string) (Result, error) {
			return Result{Backoff: true}, nil
		}, func(n int) bool { return n > 60 && n < 80 }},
		{"panic", func(context.Context, string) (Result, error) {
			panic("ouch")
		}, func(n int) bool { return n > 60 && n < 80 }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				l := testLoop(1, func(ctx context.Context, k string) (Result, error) { calls++; return c.f(ctx, k) })
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				l.Add("k")
				if err := l.Run(ctx); err != nil {
					t.Fatal(err)
				}
				if !c.want(calls) {
					t.Errorf("%d calls in an hour", calls)
				}
			})
		})
	}
}

func TestLoopNeverReconcilesOneKeyTwiceAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		busy, calls := map[string]bool{}, map[string]int{}
		l := testLoop(8, func(_ context.Context, k string) (Result, error) {
			mu.Lock()
			if busy[k] {
				t.Errorf("two workers have %s", k)
			}
			busy[k] = true
			calls[k]++
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			busy[k] = false
			mu.Unlock()
			return Result{}, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			for range 40 {
				l.Add("a")
				l.Add("b")
				time.Sleep(100 * time.Millisecond)
			}
		}()
		_ = l.Run(ctx)
		if calls["a"] < 4 || calls["a"] > 6 {
			t.Errorf("40 adds in 4 s of a key that takes 1 s: %d calls, want about 5", calls["a"])
		}
	})
}

func TestLoopWaitsForWorkersAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		finished := false
		l := testLoop(1, func(context.Context, string) (Result, error) {
			time.Sleep(time.Minute)
			finished = true
			return Result{}, nil
		})
		l.Add("k")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = l.Run(ctx)
		if !finished {
			t.Error("Run returned before its worker")
		}
	})
}

func TestMetricsCount(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	l := NewLoop(LoopConfig{Name: "m", Log: slog.New(slog.DiscardHandler), Metrics: m},
		func(_ context.Context, k string) (Result, error) {
			if k == "bad" {
				panic("bad")
			}
			return Result{}, nil
		})
	l.Add("good")
	l.Add("bad")
	l.next(t.Context())
	l.next(t.Context())
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			got[f.GetName()] += x.GetCounter().GetValue()
		}
	}
	if got["controller_reconcile_total"] != 2 || got["controller_reconcile_panics_total"] != 1 ||
		got["workqueue_adds_total"] < 2 {
		t.Errorf("metrics = %v", got)
	}
}
