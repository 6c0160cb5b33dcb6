package scheduler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/trace"
)

// binding is the second half of a pod's walk: from an assumed node to a bound one.
type binding struct {
	s       *Scheduler
	profile *framework.Profile
	state   *framework.CycleState
	pod     *framework.QueuedPod
	node    string
	start   time.Time
}

// bindTimeout bounds one binding; its outcome is then seen by the watch.
const bindTimeout = 30 * time.Second

// run binds and reports. A binding that was begun is finished even when the scheduler stops.
func (b *binding) run(ctx context.Context) {
	begin := b.s.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bindTimeout)
	defer cancel()
	st := b.profile.RunPreBind(ctx, b.state, b.pod.PodInfo, b.node)
	if st.IsSuccess() {
		st = b.profile.RunBind(ctx, b.state, b.pod.PodInfo, b.node)
	}
	now := b.s.Now()
	trace.Step(ctx, b.s.Log, b.pod.Pod, "scheduler.bind", begin, now)
	if !st.IsSuccess() {
		b.undo(ctx, st)
		return
	}
	b.s.Cache.Bound(b.pod.PodInfo, now)
	b.s.Queue.Done(b.pod.Pod.UID)
	b.profile.RunPostBind(ctx, b.state, b.pod.PodInfo, b.node)
	b.s.Metrics.attempt("scheduled", b.profile.SchedulerName, now.Sub(b.start))
	b.s.Recorder.Event(b.pod.Pod, b.profile.SchedulerName, corev1.EventTypeNormal, "Scheduled", "Binding",
		fmt.Sprintf("Successfully assigned %s to %s", b.pod.Key(), b.node))
}

// undo takes the pod off the node and back to the queue.
func (b *binding) undo(ctx context.Context, st *framework.Status) {
	b.profile.RunUnreserve(ctx, b.state, b.pod.PodInfo, b.node)
	b.s.Cache.Forget(b.pod.PodInfo)
	// The room that the pod held is free again: as good as a pod's deletion for the others.
	b.s.Queue.Moved(framework.Event{Kind: framework.AssignedPod, Action: framework.Delete, Old: b.pod.PodInfo, Label: "AssignedPodForgotten"})
	if apierrors.IsNotFound(st.Err) {
		b.s.Queue.Done(b.pod.Pod.UID)
		return
	}
	if st.IsRejected() {
		d := framework.NewDiagnosis(&framework.Snapshot{Count: 1})
		d.Reject(b.node, st)
		b.s.Metrics.attempt("unschedulable", b.profile.SchedulerName, b.s.Now().Sub(b.start))
		b.s.report(ctx, b.pod, corev1.PodReasonUnschedulable, st.Message(), nil)
		b.s.Queue.Requeue(b.pod, d.Plugins, d, false)
		return
	}
	b.s.Metrics.attempt("error", b.profile.SchedulerName, b.s.Now().Sub(b.start))
	b.s.Log.Warn("binding failed, trying again", "pod", b.pod.Key(), "node", b.node, "err", st.AsError())
	if !apierrors.IsConflict(st.Err) {
		b.s.report(ctx, b.pod, corev1.PodReasonSchedulerError, st.AsError().Error(), nil)
	}
	b.s.Queue.Requeue(b.pod, nil, nil, true)
}
