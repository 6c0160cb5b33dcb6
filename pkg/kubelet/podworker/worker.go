package podworker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/notify"
)

// Delays between tries of a step that failed, doubling from the first to the last: the first for a runtime that is just
// restarting, the last so that a pod that cannot start costs the node little and starts soon after its cause is gone.
const (
	retryMin = 500 * time.Millisecond
	retryMax = 10 * time.Second
)

// worker does everything to one pod.
type worker struct {
	all *Workers
	log *slog.Logger
	// told is when the kubelet first had the pod; synced is the pod of the last sync, nil before the first one. Only
	// the worker itself uses them once it runs.
	told   time.Time
	synced *corev1.Pod
	// wake has room for one: a step looks at everything, however often it was woken for.
	wake notify.Signal

	// mu guards what others set while a step runs. No step runs under it.
	mu    sync.Mutex
	pod   *corev1.Pod
	state State
	// removed: the pod is gone from its source. found: no source has had it in this life of the kubelet; it was found
	// in the runtime.
	removed, found bool
	// next is the pod as it came back after its removal; nil: it did not.
	next *corev1.Pod
	// grace is the shortest grace period asked for, nil before the pod terminates; end is when it is over, zero before
	// it begins.
	grace *time.Duration
	end   time.Time
	// cancel ends the step in progress; nil between steps.
	cancel context.CancelFunc
}

// set records a change of the pod. It interrupts the step in progress if the pod has to end, or has to end sooner.
func (x *worker) set(pod *corev1.Pod, removed bool) {
	x.mu.Lock()
	if x.removed && !removed && pod.DeletionTimestamp == nil {
		x.next = pod // this life goes to its end first
		x.mu.Unlock()
		return
	}
	x.pod, x.next = pod, nil
	x.removed = x.removed || removed
	before, g := x.state, x.grace
	if x.removed || pod.DeletionTimestamp != nil {
		if x.state == Syncing {
			x.state = Terminating
		}
		x.shorten(graceOf(pod))
	}
	if x.cancel != nil && (x.state != before || (x.state == Terminating && x.grace != g)) {
		x.cancel()
	}
	x.mu.Unlock()
	x.wake.Notify()
}

// shorten records a grace period if it is the shortest so far: it may become shorter, never longer. The caller holds
// mu.
func (x *worker) shorten(grace time.Duration) {
	if x.grace == nil || grace < *x.grace {
		x.grace = &grace
	}
}

// left returns the rest of the grace period, which begins with the first call.
func (x *worker) left() time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	if end := now.Add(*x.grace); x.end.IsZero() || end.Before(x.end) {
		x.end = end
	}
	return max(x.end.Sub(now), 0)
}

// interrupt ends a Sync in progress and wakes the worker. A Terminate goes on: it already does what is asked for.
func (x *worker) interrupt() {
	x.mu.Lock()
	if x.cancel != nil && x.state == Syncing {
		x.cancel()
	}
	x.mu.Unlock()
	x.wake.Notify()
}

// run does steps until ctx ends or the pod is gone. A failed step is repeated after a growing delay, or at the next
// wake.
func (x *worker) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	retry := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.wake:
		case <-timer.C:
		}
		timer.Stop()
		again, gone, err := x.step(ctx)
		switch {
		case ctx.Err() != nil || gone:
			return
		case err != nil:
			retry = min(max(2*retry, retryMin), retryMax)
			x.log.Warn("pod step failed, it will be tried again", "err", err, "after", retry)
			timer.Reset(retry)
		default:
			retry = 0
			if !again.IsZero() {
				timer.Reset(max(time.Until(again), 0))
			}
		}
	}
}

// step does the one step that is due. again is when the next one is due even if nothing happens. gone: the worker has
// nothing left to do, ever. A panic is an error of this pod's step: a mistake about one pod must not end the kubelet.
func (x *worker) step(parent context.Context) (again time.Time, gone bool, err error) {
	x.mu.Lock()
	pod, state, removed := x.pod, x.state, x.removed
	ctx, cancel := context.WithCancel(parent)
	x.cancel = cancel
	x.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a step of pod %s/%s: %v", pod.Namespace, pod.Name, r)
		} else if ctx.Err() != nil {
			err = nil // interrupted by a change, which has woken this worker
		}
		cancel()
		x.mu.Lock()
		x.cancel = nil
		x.mu.Unlock()
	}()
	switch state {
	case Syncing:
		if !x.all.turn(pod) {
			return time.Time{}, false, nil
		}
		var out Outcome
		if out, err = x.sync(ctx, pod); err == nil && out.Ended {
			grace := graceOf(pod)
			if out.Grace != nil {
				grace = max(*out.Grace, leastGrace)
			}
			x.mu.Lock()
			x.shorten(grace)
			x.mu.Unlock()
			x.advance(Syncing, Terminating)
		}
		return out.Wake, false, err
	case Terminating:
		begun := time.Now()
		err = x.all.steps.Terminate(ctx, pod, x.left())
		if x.all.metrics.WorkerStep("kill", time.Since(begun)); err == nil {
			x.advance(Terminating, Terminated)
		}
	case Terminated:
		if err = x.all.steps.Cleanup(ctx, pod); err == nil {
			x.advance(Terminated, Finished)
			x.all.release(pod) // not earlier: the next pod of this name must not meet this one's containers and mounts
		}
	case Finished:
		if !removed {
			return time.Time{}, false, x.all.steps.Finish(ctx, pod)
		}
		if err = x.all.steps.Forget(ctx, pod); err == nil {
			x.all.drop(x)
			return time.Time{}, true, nil
		}
	}
	return time.Time{}, false, err
}

// sync is the step of a pod that is to run, with its metrics.
func (x *worker) sync(ctx context.Context, pod *corev1.Pod) (Outcome, error) {
	begun, operation := time.Now(), "sync"
	switch {
	case x.synced == nil:
		operation = "create"
		x.all.metrics.WorkerStarted(pod, begun.Sub(x.told))
	case x.synced != pod:
		operation = "update"
	}
	x.synced = pod
	out, err := x.all.steps.Sync(ctx, pod)
	x.all.metrics.WorkerStep(operation, time.Since(begun))
	return out, err
}

// advance moves to the next state and makes its step due. If a change has moved the state already, that one stays.
func (x *worker) advance(from, to State) {
	x.mu.Lock()
	if x.state == from {
		x.state = to
	}
	x.mu.Unlock()
	x.wake.Notify()
}
