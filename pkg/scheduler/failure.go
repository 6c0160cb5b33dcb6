package scheduler

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/framework"
)

// maxMessage bounds what is written into conditions and events, in bytes.
const maxMessage = 1024

// report tells the world why a pod has no node: an event, and the condition PodScheduled=False if it says something
// new. A nomination other than nil is written with it.
func (s *Scheduler) report(ctx context.Context, pod *framework.QueuedPod, reason, message string, nominated *string) {
	note := message
	if len(note) > maxMessage {
		note = note[:maxMessage-4] + " ..."
	}
	s.Recorder.Event(pod.Pod, pod.Pod.Spec.SchedulerName, corev1.EventTypeWarning, "FailedScheduling", "Scheduling",
		note)
	condition := &corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		ObservedGeneration: pod.Pod.Generation, LastTransitionTime: metav1.NewTime(s.Now()),
	}
	if old := scheduledCondition(pod.Pod); old != nil && old.Status == corev1.ConditionFalse {
		condition.LastTransitionTime = old.LastTransitionTime
	}
	if nominated == nil && !news(pod, condition) {
		return
	}
	pod.Reported = condition
	s.Statuses.Put(ctx, pod.Pod, condition, nominated)
}

// news reports whether condition says something that the pod's condition, as last seen and as last written, does not.
func news(pod *framework.QueuedPod, condition *corev1.PodCondition) bool {
	same := func(old *corev1.PodCondition) bool {
		return old != nil && old.Status == condition.Status && old.Reason == condition.Reason &&
			old.Message == condition.Message
	}
	return !same(scheduledCondition(pod.Pod)) || pod.Reported != nil && !same(pod.Reported)
}

func scheduledCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodScheduled {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
