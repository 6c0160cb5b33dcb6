package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Reason and message of a pod that has used up its activeDeadlineSeconds.
const (
	ReasonDeadlineExceeded  = "DeadlineExceeded"
	MessageDeadlineExceeded = "Pod was active on the node longer than the specified deadline"
)

// Deadline is when the pod must have ended: activeDeadlineSeconds after its start time, with the status as last
// reported. It is zero for a pod that may run for ever, has not started or has ended.
//
// It counts from the time that was reported, so a restart of the kubelet does not extend it.
func Deadline(pod *corev1.Pod) time.Time {
	if pod.Spec.ActiveDeadlineSeconds == nil || pod.Status.StartTime == nil ||
		pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return time.Time{}
	}
	return pod.Status.StartTime.Add(runtime.Seconds(*pod.Spec.ActiveDeadlineSeconds))
}

// Earlier returns the earlier of two times; the zero time means never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
