package podautoscaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// history is what the controller remembers of an autoscaler, for as long as the process lives. It has no lock: only the
// goroutine that reconciles the autoscaler uses it. When an entry is added, entries leave that are older than the
// longest window or period, which the API limits to an hour.
//
// It is lost with the process. After a restart the window begins with the present size (begin).
type history struct {
	recommendations []recommendation
	changes         []change
	// zeroed says that the last change was one to 0. The status says so, too, unless it could not be written.
	zeroed bool
}

// recommendation is what the metrics asked for at a time.
type recommendation struct {
	replicas int32
	at       time.Time
}

// change is the number of replicas that were added (or, below 0, removed) at a time.
type change struct {
	by int32
	at time.Time
}

// begin records the present size as the first recommendation. Nothing is known of the time before the process started,
// and without this entry the first recommendation could scale down at once.
func (h *history) begin(replicas int32, now time.Time) {
	if len(h.recommendations) == 0 {
		h.recommend(replicas, now, 0)
	}
}

// recommend adds what the metrics ask for and drops what is older than window.
//
// It filters in place: the slice is as long as the looks in a window, 240 for an hour at one look in 15 s.
func (h *history) recommend(replicas int32, now time.Time, window time.Duration) {
	kept := h.recommendations[:0]
	for _, r := range h.recommendations {
		if !r.at.Before(now.Add(-window)) {
			kept = append(kept, r)
		}
	}
	h.recommendations = append(kept, recommendation{replicas, now})
}

// lowest returns the smallest of n and the recommendations after a time. For the window up: a size that one
// recommendation of the window did not ask for is not reached yet.
func (h *history) lowest(n int32, after time.Time) int32 {
	for _, r := range h.recommendations {
		if r.at.After(after) {
			n = min(n, r.replicas)
		}
	}
	return n
}

// highest returns the largest of n and the recommendations after a time. For the window down: a size below what one
// recommendation of the window asked for is not reached yet.
func (h *history) highest(n int32, after time.Time) int32 {
	for _, r := range h.recommendations {
		if r.at.After(after) {
			n = max(n, r.replicas)
		}
	}
	return n
}

// changed adds a change and drops those that no policy of b looks at any more. Without a behavior there are no
// policies, and nothing is kept.
//
// The longest period of both directions counts: size looks at all changes for either.
func (h *history) changed(by int32, now time.Time, b *autoscalingv2.HorizontalPodAutoscalerBehavior) {
	if b == nil {
		h.changes = nil
		return
	}
	after := now.Add(-max(longestPeriod(b.ScaleUp), longestPeriod(b.ScaleDown)))
	kept := h.changes[:0]
	for _, c := range h.changes {
		if c.at.After(after) {
			kept = append(kept, c)
		}
	}
	h.changes = append(kept, change{by, now})
}

// size returns how many replicas there were at the beginning of the period that ends now with replicas, as far as the
// changes tell.
//
// It undoes the changes of the period. Changes by others are not in the history, and count as if they had been before
// it.
func (h *history) size(replicas int32, period time.Duration, now time.Time) int32 {
	for _, c := range h.changes {
		if c.at.After(now.Add(-period)) {
			replicas -= c.by
		}
	}
	return replicas
}

func longestPeriod(r *autoscalingv2.HPAScalingRules) time.Duration {
	var longest time.Duration
	if r != nil {
		for _, p := range r.Policies {
			longest = max(longest, period(p))
		}
	}
	return longest
}

func period(p autoscalingv2.HPAScalingPolicy) time.Duration {
	return time.Duration(p.PeriodSeconds) * time.Second
}
