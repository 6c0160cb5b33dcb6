package scheduler

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/framework"
)

// patchTimeout bounds the write of a pod's condition.
const patchTimeout = 10 * time.Second

// maxMessage bounds what is written into conditions and events, in bytes.
const maxMessage = 1024

// report tells the world why a pod has no node: an event, and the condition PodScheduled=False if it says something new. A
// nomination other than nil is written with it.
func (s *Scheduler) report(ctx context.Context, pod *framework.QueuedPod, reason, message string, nominated *string) {
	note := message
	if len(note) > maxMessage {
		note = note[:maxMessage-4] + " ..."
	}
	s.Recorder.Event(pod.Pod, pod.Pod.Spec.SchedulerName, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", note)
	condition := &corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		ObservedGeneration: pod.Pod.Generation, LastTransitionTime: metav1.NewTime(s.Now()),
	}
	if old := scheduledCondition(pod.Pod); old != nil && old.Status == corev1.ConditionFalse {
		condition.LastTransitionTime = old.LastTransitionTime
		if old.Reason == reason && old.Message == message && nominated == nil {
			return
		}
	}
	target := pod.Pod // the queue may replace it from now on
	s.binding.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patchTimeout)
		defer cancel()
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
		if err := s.API.PatchStatus(ctx, target, condition, nominated); err != nil && !apierrors.IsNotFound(err) {
			s.Log.Warn("writing why a pod is not scheduled failed", "pod", framework.PodKey(target), "err", err)
		}
	})
}

func scheduledCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodScheduled {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
