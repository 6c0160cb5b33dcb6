package framework

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/model"
)

// QueuedPod is a pod that waits for a node, with its story in the queue. The queue owns it; between Pop and the pod's
// return or departure it belongs to the scheduling cycle.
type QueuedPod struct {
	*model.PodInfo
	// Added is when the pod came into the active queue last; FirstAdded the first time.
	Added, FirstAdded time.Time
	Attempts          int
	// Failed names the plug-ins that turned the pod down at the last try: only events they asked for wake it up.
	Failed map[string]bool
	// Gated says which PreEnqueue plug-in holds the pod back, "" if none.
	Gated string
	// Diagnosis is why the last try failed.
	Diagnosis *Diagnosis
	// Reported is the condition that was last given to be written, nil if none was: a watch may not show it yet.
	Reported *corev1.PodCondition
}
