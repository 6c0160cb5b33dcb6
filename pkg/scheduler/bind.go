package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/profile"
)

// binding is the second half of a pod's walk: from an assumed node to a bound one.
type binding struct {
	s       *Scheduler
	profile *profile.Profile
	state   *framework.CycleState
	pod     *framework.QueuedPod
	node    string
	// start is when the pod came out of the queue, decided when its node was known.
	start, decided time.Time
	// nominated is where the pod was nominated to before, nil if nowhere.
	nominated *string
	// prepared: PreBind is done.
	prepared bool
}

// bindTimeout bounds one binding; its outcome is then seen by the watch.
const bindTimeout = 30 * time.Second

// linger does what must be done before the pod is bound and may take long, for as long as the plug-ins say. It holds no
// binder.
func (b *binding) linger(ctx context.Context) *framework.Status {
	b.prepared = true
	return b.preBind(ctx)
}

func (b *binding) preBind(ctx context.Context) *framework.Status {
	return b.s.timed("PreBind", b.profile, func() *framework.Status {
		return b.profile.RunPreBind(ctx, b.state, b.pod.PodInfo, b.node)
	})
}

// run binds and reports. It ends with ctx, which is the leadership's: what another leader decides must not be
// overtaken.
func (b *binding) run(ctx context.Context) {
	begin := b.s.Now()
	st := b.bind(ctx)
	now := b.s.Now()
	b.did(begin, now, st)
	b.s.Statuses.Release(ctx, b.pod.Pod.UID, st.IsSuccess())
	if !st.IsSuccess() {
		b.undo(ctx, st)
		return
	}
	b.s.Queue.Done(b.pod.Pod.UID)
	if n := b.nominated; n != nil && *n != b.node {
		b.s.freed(b.pod.PodInfo)
	}
	b.s.timed("PostBind", b.profile, func() *framework.Status {
		b.profile.RunPostBind(ctx, b.state, b.pod.PodInfo, b.node)
		return nil
	})
	b.s.Metrics.attempt("scheduled", b.profile.SchedulerName, now.Sub(b.start))
	b.s.Metrics.scheduled(b.pod.Attempts, now.Sub(b.pod.FirstAdded))
	b.s.Recorder.Event(b.pod.Pod, b.profile.SchedulerName, corev1.EventTypeNormal, "Scheduled", "Binding",
		fmt.Sprintf("Successfully assigned %s to %s", b.pod.Key(), b.node))
}

// bind calls the plug-ins. No write of the pod's status is under way from then on until Release.
func (b *binding) bind(ctx context.Context) *framework.Status {
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	b.s.Statuses.Hold(b.pod.Pod.UID)
	if err := ctx.Err(); err != nil {
		return framework.AsStatus(err)
	}
	if !b.prepared {
		if st := b.preBind(ctx); !st.IsSuccess() {
			return st
		}
	}
	return b.s.timed("Bind", b.profile, func() *framework.Status {
		return b.profile.RunBind(ctx, b.state, b.pod.PodInfo, b.node)
	})
}

// undo takes the pod off the node and back to the queue.
func (b *binding) undo(ctx context.Context, st *framework.Status) {
	b.s.timed("Unreserve", b.profile, func() *framework.Status {
		b.profile.RunUnreserve(ctx, b.state, b.pod.PodInfo, b.node)
		return nil
	})
	b.s.Cache.Forget(b.pod.PodInfo)
	// The room that the pod held is free again: as good as a pod's deletion for the others.
	b.s.Queue.Moved(clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete, Old: b.pod.PodInfo,
		Label: "AssignedPodForgotten"})
	switch {
	case ctx.Err() != nil || gone(st.Err, b.pod.Pod):
		b.s.Queue.Done(b.pod.Pod.UID)
	case st.IsRejected():
		d := framework.RefusedBy(b.node, st)
		b.s.Metrics.attempt("unschedulable", b.profile.SchedulerName, b.s.Now().Sub(b.start))
		b.s.report(ctx, b.pod, corev1.PodReasonUnschedulable, st.Message(), nil)
		b.s.requeue(b.pod, b.nominated, d.Plugins, d, false)
	default:
		b.s.Metrics.attempt("error", b.profile.SchedulerName, b.s.Now().Sub(b.start))
		b.s.Log.Warn("binding failed, trying again", "pod", b.pod.Key(), "node", b.node, "err", st.AsError())
		if !apierrors.IsConflict(st.Err) {
			b.s.report(ctx, b.pod, corev1.PodReasonSchedulerError, st.AsError().Error(), nil)
		}
		b.s.requeue(b.pod, b.nominated, nil, nil, true)
	}
}

// gone reports whether an error says that there is no such pod any more. That one of its claims or volumes is not there
// says nothing of the pod: it waits for another one, and nothing but the queue would bring it back.
func gone(err error, pod *corev1.Pod) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d != nil && d.Kind == "pods" && d.Name == pod.Name
}
