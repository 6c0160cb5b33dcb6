package why

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// LastSeen is when an event happened last. Events of the old and of the new API keep it in different fields.
func LastSeen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}
