package podautoscaler

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// limited is a number of replicas and why it is not another one, for a condition.
//
// Each step of the decision returns one, and the step that changed the number names the condition.
type limited struct {
	replicas        int32
	reason, message string
}

func withinRange(n int32) limited {
	return limited{n, "DesiredWithinRange", "the desired count is within the acceptable range"}
}

func tooFew(n int32) limited {
	return limited{n, "TooFewReplicas", "the desired replica count is less than the minimum replica count"}
}

func tooMany(n int32) limited {
	return limited{n, "TooManyReplicas", "the desired replica count is more than the maximum replica count"}
}

func tooFast(n int32) limited {
	return limited{n, "ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"}
}

func tooFastDown(n int32) limited {
	return limited{n, "ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate"}
}

// plainUp is the size that an autoscaler without spec.behavior may reach in one step. Beyond it a step doubles the size
// at most.
const plainUp = 4

// stabilized is the size that the recommendations of the windows allow now; it also notes the newest, n. On the way
// down the highest recommendation of the window wins, on the way up the lowest. A load that swings within a window
// therefore moves nothing. Without spec.behavior there is a window down only
// (https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/#stabilization-window).
func (o *observation) stabilized(n int32) limited {
	down := limited{0, "ScaleDownStabilized",
		"recent recommendations were higher than current one, applying the highest recent recommendation"}
	up := limited{0, "ScaleUpStabilized",
		"recent recommendations were lower than current one, applying the lowest recent recommendation"}
	b := o.autoscaler.Spec.Behavior
	if b == nil {
		window := o.config.Stabilization
		down.replicas = o.history.highest(n, o.now.Add(-window))
		o.history.recommend(n, o.now, window)
		return named(n, down)
	}
	windowUp, windowDown := window(b.ScaleUp, 0), window(b.ScaleDown, o.config.Stabilization)
	// Both windows are computed before n is noted. Between the two the present size stays.
	lowest, highest := o.history.lowest(n, o.now.Add(-windowUp)), o.history.highest(n, o.now.Add(-windowDown))
	o.history.recommend(n, o.now, max(windowUp, windowDown))
	chosen := down
	if n >= o.wanted {
		chosen = up
	}
	chosen.replicas = min(max(o.wanted, lowest), highest)
	return named(n, chosen)
}

// named adds the reason if the recommendation n is not followed.
//
// Following the recommendation is ReadyForNewScale, also when the recommendation is the present size.
func named(n int32, s limited) limited {
	if s.replicas == n {
		return limited{n, "ReadyForNewScale", "recommended size matches current size"}
	}
	return s
}

// window is the stabilization window of a direction, otherwise if the autoscaler names none. 0 is a window of its own:
// no stabilization.
func window(r *autoscalingv2.HPAScalingRules, otherwise time.Duration) time.Duration {
	if r == nil || r.StabilizationWindowSeconds == nil {
		return otherwise
	}
	return time.Duration(*r.StabilizationWindowSeconds) * time.Second
}

// limit keeps n between least and most, and the steps to it within the rules.
//
// The rate is looked at before the range, so that the condition names what limits the size first. Reaching minReplicas
// or maxReplicas is never hindered by a rate that would overshoot it.
func (o *observation) limit(n int32) limited {
	fewest, most := least(o.autoscaler), o.autoscaler.Spec.MaxReplicas
	b := o.autoscaler.Spec.Behavior
	if b == nil {
		return limitPlain(o.wanted, n, fewest, most)
	}
	switch {
	case n > o.wanted:
		rate := max(o.fastest(b.ScaleUp, true), o.wanted)
		if most > rate && n > rate {
			return tooFast(rate)
		}
		if n > most {
			return tooMany(most)
		}
	case n < o.wanted:
		rate := min(o.fastest(b.ScaleDown, false), o.wanted)
		if fewest < rate && n < rate {
			return tooFastDown(rate)
		}
		if n < fewest {
			return tooFew(fewest)
		}
	}
	return withinRange(n)
}

// limitPlain is limit without spec.behavior. int64 keeps twice a large size from overflowing.
func limitPlain(now, n, fewest, most int32) limited {
	rate := max(2*int64(now), plainUp)
	switch {
	case n < fewest:
		return tooFew(fewest)
	case int64(most) > rate && int64(n) > rate:
		return tooFast(int32(rate))
	case n > most:
		return tooMany(most)
	}
	return withinRange(n)
}

// fastest is how far the policies of a direction let the size go now, after what has changed in their periods.
//
// Without policies a direction is not limited. Disabled keeps the present size. Otherwise each policy gives a size from
// the size at the beginning of its own period, and selectPolicy chooses: Max, the default, the one that changes most.
func (o *observation) fastest(r *autoscalingv2.HPAScalingRules, up bool) int32 {
	if r == nil || len(r.Policies) == 0 {
		if up {
			return math.MaxInt32
		}
		return 0
	}
	selected := autoscalingv2.MaxChangePolicySelect
	if r.SelectPolicy != nil {
		selected = *r.SelectPolicy
	}
	if selected == autoscalingv2.DisabledPolicySelect {
		return o.wanted
	}
	// The largest change is the highest size on the way up and the lowest on the way down.
	highest := up == (selected != autoscalingv2.MinChangePolicySelect)
	var out int32
	for i, p := range r.Policies {
		reach := reach(p, o.history.size(o.wanted, period(p), o.now), up)
		if i == 0 || highest == (reach > out) {
			out = reach
		}
	}
	return out
}

// reach is how far a policy lets a size go that was start at the beginning of its period.
//
// 64 bits: a percentage of a large size would overflow 32.
func reach(p autoscalingv2.HPAScalingPolicy, start int32, up bool) int32 {
	step := int64(p.Value)
	if !up {
		step = -step
	}
	if p.Type == autoscalingv2.PodsScalingPolicy {
		return clamp(int64(start) + step)
	}
	// Hundredths of replicas in integers. Up is rounded up, down is cut off: a percentage of a small size still moves
	// it.
	hundredths := int64(start) * (100 + step)
	if up {
		hundredths += 99 // a started replica counts
	}
	return clamp(hundredths / 100)
}

func clamp(n int64) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }
