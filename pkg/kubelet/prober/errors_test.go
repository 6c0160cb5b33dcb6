package prober

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// While the runtime does not answer nothing is known of a container: it keeps its last result, and a failure before
// does not count on.
func TestAProbeThatCannotBeMadeChangesNothing(t *testing.T) {
	t.Parallel()
	down := errors.New("rpc error: code = Unavailable desc = connection refused")
	bubble(t, func(_ context.Context, b *bench) {
		ask := b.m.cfg.Exec
		var err error
		b.m.cfg.Exec = func(ctx context.Context, id string, cmd []string, d time.Duration) (runtime.ExecResult, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if err != nil {
				return runtime.ExecResult{}, err
			}
			return ask(ctx, id, cmd, d)
		}
		set := func(e error) { b.mu.Lock(); err = e; b.mu.Unlock() }
		b.m.Update(pod(corev1.Container{LivenessProbe: probe(3), ReadinessProbe: probe(3)}), target(time.Now(), false))
		time.Sleep(1500 * time.Millisecond)
		b.code.Store(1)
		time.Sleep(2 * time.Second) // two failures of three
		b.code.Store(0)
		set(down)
		time.Sleep(time.Minute)
		for _, k := range []Kind{Liveness, Readiness} {
			if r := b.m.Result("containerd://1", k); r != runtime.ProbeSuccess {
				t.Errorf("%s after a minute without the runtime: %v", k, r)
			}
		}
		b.mu.Lock()
		last := b.events[len(b.events)-1]
		b.mu.Unlock()
		if !strings.Contains(last, "probe errored and resulted in unknown state: rpc error") {
			t.Error(last)
		}
		set(nil)
		b.code.Store(1)
		time.Sleep(5 * time.Second)
		if b.m.Result("containerd://1", Liveness) != runtime.ProbeFailure {
			t.Error("the container's own failures must count once the runtime answers")
		}
	})
}
