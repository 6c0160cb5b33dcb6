package prober

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.39.0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/trace"
)

// worker runs one probe of one container, across the container's restarts. Only its own goroutine uses the fields below
// stopped.
type worker struct {
	manager   *Manager
	pod       *corev1.Pod
	uid       types.UID
	container *corev1.Container
	kind      Kind
	probe     *corev1.Probe
	wake      notify.Signal
	stopped   atomic.Bool

	// id is the container that the counts below belong to; seen is when the worker first looked at it.
	id   string
	seen time.Time
	// last and row are the last outcome and how often it came in a row.
	last runtime.ProbeResult
	row  int32
	// early is the pause until the next early probe of a container that has not been ready yet; 0 once it has been.
	early time.Duration
	// between is the time of an early probe before the period's next one; zero: none.
	between time.Time
	// passed: the container's probe has succeeded before.
	passed bool
	// hold: after a failure that kills the container, nothing is probed until a new one runs.
	hold bool
}

// firstEarly is the first wait for a container whose first readiness probe failed. Each next wait is twice as long,
// until it is the probe's period: most servers listen a fraction of a second after their start, and periods are whole
// seconds. Failures in between are neither counted nor reported, because probes at the period alone would not have seen
// them.
const firstEarly = 250 * time.Millisecond

// run probes until ctx ends: once in each period, and, while the container is not known to be ready, also whenever its
// pod is looked at, so that it need not wait for the end of the period. After a restart of the kubelet the first probes
// are spread over one period, so that not all of the node's probes run at once.
func (w *worker) run(ctx context.Context, spread time.Duration) {
	timer := time.NewTimer(0)
	timer.Stop() // Update wakes it
	defer timer.Stop()
	next := time.Now()
	_, t := w.manager.target(w.uid, w.container.Name)
	if t.ID != "" && t.Started.Before(w.manager.cfg.Started) {
		next = next.Add(spread)
	}
	for {
		looked := false
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			looked = true
		case <-timer.C:
		}
		now := time.Now()
		at, due := w.due(now)
		if due && at.Before(next) && !(looked && w.unready()) {
			at = next
		}
		switch {
		case due && !at.After(now):
			w.once(ctx, true)
			next = now.Add(period(w.probe))
			at = w.sooner(now, next)
		case due && !w.between.IsZero() && !w.between.After(now):
			w.once(ctx, false)
			at = w.sooner(now, next)
		case due && !w.between.IsZero():
			at = w.between
		}
		timer.Stop()
		if due {
			timer.Reset(max(time.Until(at), time.Millisecond))
		}
	}
}

// sooner returns the time of the next probe: next, or an early one before it.
func (w *worker) sooner(now, next time.Time) time.Time {
	w.between = time.Time{}
	if at := now.Add(w.early); w.early != 0 && w.early < period(w.probe) && at.Before(next) {
		w.early *= 2
		w.between = at
		return at
	}
	return next
}

// unready reports whether this is a readiness probe and its container is not known to be ready.
func (w *worker) unready() bool {
	return w.kind == Readiness && w.manager.Result(w.id, Readiness) != runtime.ProbeSuccess
}

// due reports whether the container is to be probed, and from when on. Liveness and readiness wait for the startup
// probe, and the startup probe ends with its success.
func (w *worker) due(now time.Time) (time.Time, bool) {
	_, t := w.manager.target(w.uid, w.container.Name)
	if w.stopped.Load() || t.ID == "" {
		return time.Time{}, false
	}
	if t.ID != w.id {
		w.id, w.seen, w.last, w.row, w.early, w.between, w.hold = t.ID, now, runtime.ProbeUnknown, 0, 0, time.Time{},
			false
		w.passed = t.Started.Before(w.manager.cfg.Started) // as far as is known
		if w.kind == Readiness {
			w.early = firstEarly
		}
	}
	if w.hold {
		return time.Time{}, false
	}
	done := t.StartupDone || w.manager.Result(t.ID, Startup) == runtime.ProbeSuccess
	if (w.kind == Startup) == done {
		return time.Time{}, false
	}
	began := t.Started
	if began.After(w.seen) { // the clock was put back, perhaps by hours
		began = w.seen
	}
	first := began.Add(time.Duration(w.probe.InitialDelaySeconds) * time.Second)
	if first.Before(now) {
		first = now
	}
	return first, true
}

// once probes and counts. At the threshold the result changes. A probe that could not be made does not count, nor does
// a failure between the regular probes.
func (w *worker) once(ctx context.Context, regular bool) {
	pod, t := w.manager.target(w.uid, w.container.Name)
	if pod == nil || t.ID != w.id {
		return
	}
	begun := time.Now()
	ok, warn, message, err := w.manager.try(ctx, pod, w.container, w.probe, t)
	if ctx.Err() != nil || w.stopped.Load() || !regular && (!ok || err != nil) {
		return
	}
	w.count(pod, ok, err, time.Since(begun))
	if err != nil { // the runtime does not answer: no reason to end the container, nor to call it ready
		w.manager.cfg.Log.Warn("probe could not be made, its last result stands", "pod", pod.Namespace+"/"+pod.Name,
			"container", w.container.Name, "probe", w.kind.String(), "err", err)
		w.manager.cfg.Event(pod, w.container.Name, corev1.EventTypeWarning, "Unhealthy",
			fmt.Sprintf("%s probe errored and resulted in unknown state: %v", w.kind, err))
		return
	}
	outcome := runtime.ProbeFailure
	if ok {
		outcome, w.early = runtime.ProbeSuccess, 0
		if warn {
			w.manager.cfg.Event(pod, w.container.Name, corev1.EventTypeWarning, "ProbeWarning",
				fmt.Sprintf("%s probe warning: %s", w.kind, message))
		}
	} else {
		w.manager.cfg.Event(pod, w.container.Name, corev1.EventTypeWarning, "Unhealthy",
			fmt.Sprintf("%s probe failed: %s", w.kind, message))
	}
	if outcome != w.last {
		w.last, w.row = outcome, 0
	}
	w.row++
	threshold := max(w.probe.SuccessThreshold, 1)
	if outcome == runtime.ProbeFailure {
		threshold = max(w.probe.FailureThreshold, 1)
	}
	if w.row < threshold {
		return
	}
	if outcome == runtime.ProbeSuccess && !w.passed {
		w.passed = true
		w.didPass(pod, t.Started)
	}
	w.manager.set(w.uid, w.id, w.kind, outcome)
	if outcome == runtime.ProbeFailure && w.kind != Readiness {
		w.hold = true
	}
}

// didPass records the first success of the probe, from the container's start.
func (w *worker) didPass(pod *corev1.Pod, started time.Time) {
	if t := w.manager.cfg.Tracer; t.Records(pod.UID) {
		t.Step(trace.Pod(pod), trace.Step{Name: "kubelet.probe", Start: started, End: time.Now(),
			Attributes: []attribute.KeyValue{semconv.K8SContainerName(w.container.Name),
				attribute.String("bonsai.probe.kind", w.kind.String())}})
	}
}

// count counts the probe, unless the pod was removed meanwhile: its series would stay for ever.
func (w *worker) count(pod *corev1.Pod, ok bool, err error, took time.Duration) {
	w.manager.mu.Lock()
	defer w.manager.mu.Unlock()
	if w.manager.pods[w.uid] != nil {
		w.manager.cfg.Metrics.probed(pod, w.container.Name, w.kind, ok, err, took)
	}
}
