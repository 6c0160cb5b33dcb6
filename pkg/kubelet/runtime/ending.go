package runtime

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ReasonEvicted is the reason of a pod that had to go because it, or the node, used too much of something.
const ReasonEvicted = "Evicted"

// Ending is why and how the node ends a pod on its own account.
type Ending struct {
	// Reason and Message are those of the pod's status; the condition DisruptionTarget has the message, too.
	Reason, Message string
	// Signal is what metrics of evictions count it by; "": it is none.
	Signal string
	// Grace is what its containers get for their end.
	Grace time.Duration
}

// Critical reports whether a pod is never evicted: static pods, and pods of the system's priority classes.
func Critical(pod *corev1.Pod) bool {
	return IsStatic(pod) || Priority(pod) >= SystemCriticalPriority
}

// Priority returns a pod's priority, 0 if it has none.
func Priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}
