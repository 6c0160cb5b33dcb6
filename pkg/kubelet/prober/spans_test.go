package prober

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/trace/tracetest"
)

// TestFirstSuccess: the first success of each probe of a container is recorded, from the container's start; later ones,
// and those of containers that ran before the kubelet, are not.
func TestFirstSuccess(t *testing.T) {
	t.Parallel()
	bubble(t, func(_ context.Context, b *bench) {
		tracer, spans := tracetest.New("kubelet")
		b.m.cfg.Tracer = tracer
		p := pod(corev1.Container{ReadinessProbe: probe(1), LivenessProbe: probe(1)})
		p.UID = "f3a1c2d4-0b5e-4c6f-8a7b-9c0d1e2f3a4b"
		b.code.Store(1)
		started := time.Now()
		b.m.Update(p, target(started.Add(-time.Hour), true))
		time.Sleep(3 * time.Second)
		b.code.Store(0)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := spans.Names(); len(got) != 0 {
			t.Errorf("a container of an earlier life: %q", got)
		}
		again := target(time.Now(), false)
		again["c"] = Target{ID: "containerd://2", RawID: "2", Started: time.Now(), StartupDone: true}
		started = time.Now()
		b.m.Update(p, again)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		kinds := map[string]int{}
		for _, s := range spans.Named("kubelet.probe") {
			kinds[tracetest.Attribute(s, "bonsai.probe.kind")]++
			if !s.StartTime().Equal(started) || tracetest.Attribute(s, "k8s.container.name") != "c" {
				t.Errorf("%v, %v", s.StartTime(), s.Attributes())
			}
		}
		if len(spans.All()) != 2 || kinds["Readiness"] != 1 || kinds["Liveness"] != 1 {
			t.Errorf("%v", kinds)
		}
	})
}
