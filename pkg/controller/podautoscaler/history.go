package podautoscaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// history is what is remembered of an autoscaler, for as long as the process lives. Both lists hold nothing older than
// the longest window or period that the API allows, an hour.
type history struct {
	recommendations []recommendation
	changes         []change
}

// recommendation is what the metrics asked for at a time.
type recommendation struct {
	replicas int32
	at       time.Time
}

// change is what was added (or, below 0, taken away) at a time.
type change struct {
	by int32
	at time.Time
}

// begin takes the present size for what has been recommended so far: nothing is known of the time before.
func (h *history) begin(replicas int32, now time.Time) {
	if len(h.recommendations) == 0 {
		h.recommend(replicas, now, 0)
	}
}

// recommend notes what the metrics ask for and forgets what is older than the window.
func (h *history) recommend(replicas int32, now time.Time, window time.Duration) {
	kept := h.recommendations[:0]
	for _, r := range h.recommendations {
		if !r.at.Before(now.Add(-window)) {
			kept = append(kept, r)
		}
	}
	h.recommendations = append(kept, recommendation{replicas, now})
}

// lowest and highest are the extremes of n and of the recommendations after a time.
func (h *history) lowest(n int32, after time.Time) int32 {
	for _, r := range h.recommendations {
		if r.at.After(after) {
			n = min(n, r.replicas)
		}
	}
	return n
}

func (h *history) highest(n int32, after time.Time) int32 {
	for _, r := range h.recommendations {
		if r.at.After(after) {
			n = max(n, r.replicas)
		}
	}
	return n
}

// changed notes a change and forgets those that no policy looks at any more.
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

// size is how many replicas there were, by what is remembered, at the beginning of the period that ends now with
// replicas.
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
