package printers

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// EventAge is how long ago the event happened and, if it did more than once, how often and since when: "5s (x3 over
// 2m)".
func EventAge(e *corev1.Event, now time.Time) string {
	first := e.EventTime.Time
	if first.IsZero() {
		first = e.FirstTimestamp.Time
	}
	switch {
	case e.Series != nil:
		return often(e.Series.LastObservedTime.Time, first, e.Series.Count, now)
	case e.Count > 1:
		return often(e.LastTimestamp.Time, first, e.Count, now)
	}
	return since(first, now)
}

func often(last, first time.Time, count int32, now time.Time) string {
	return fmt.Sprintf("%s (x%d over %s)", since(last, now), count, since(first, now))
}

func since(t, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t))
}
