package pressure

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Observation is how much a node has of something, and how much of it is left, in units of the signal.
type Observation struct{ Available, Capacity int64 }

// Observations are the results of one look at the node. What could not be observed is left out, and nothing is decided
// about it.
type Observations map[Signal]Observation

// Policy has what does not change between observations.
type Policy struct {
	Thresholds []Threshold
	// Transition is how long a condition is shown after its signal was last too low.
	Transition time.Duration
	// MaxPodGrace is the longest time that pods get for their end under a soft threshold; negative: what they ask for.
	MaxPodGrace time.Duration
}

// State is what is remembered between observations. The zero State has seen nothing. It is never changed in place.
type State struct {
	// since is when thresholds were crossed that are not resolved yet.
	since map[Threshold]time.Time
	// last is when conditions last held.
	last map[corev1.NodeConditionType]time.Time
}

// Decision is what follows from a look.
type Decision struct {
	// Conditions are the conditions of pressure that hold.
	Conditions []corev1.NodeConditionType
	// Due are the thresholds that call for action, the most urgent first.
	Due []Threshold
}

// Next decides. A threshold that was crossed is not resolved before its MinReclaim is free as well; one that cannot be
// observed any more counts as resolved. A condition stays for Transition after it last held, so that it does not flap.
// The states are not changed.
func (p Policy) Next(before State, seen Observations, now time.Time) (State, Decision) {
	after := State{since: map[Threshold]time.Time{}, last: map[corev1.NodeConditionType]time.Time{}}
	var d Decision
	for _, t := range p.Thresholds {
		since, was := before.since[t]
		if !t.crossed(seen, was) {
			continue
		}
		if !was {
			since = now
		}
		after.since[t] = since
		after.last[t.Signal.Condition()] = now
		if now.Sub(since) >= t.Grace {
			d.Due = append(d.Due, t)
		}
	}
	for c, at := range before.last {
		if _, holds := after.last[c]; !holds && now.Sub(at) < p.Transition {
			after.last[c] = at
		}
	}
	for c := range after.last {
		d.Conditions = append(d.Conditions, c)
	}
	slices.Sort(d.Conditions)
	slices.SortStableFunc(d.Due, func(a, b Threshold) int {
		return cmp.Compare(a.Signal.urgency(), b.Signal.urgency())
	})
	return after, d
}

// Enough reports whether none of the thresholds is crossed, with their MinReclaim.
func (p Policy) Enough(seen Observations) bool {
	return !slices.ContainsFunc(p.Thresholds, func(t Threshold) bool { return t.crossed(seen, true) })
}

// Relieved reports whether enough of what the threshold is about was seen, with its MinReclaim. What was not seen is
// not known to be enough.
func (t Threshold) Relieved(seen Observations) bool {
	_, ok := seen[t.Signal]
	return ok && !t.crossed(seen, true)
}

// crossed reports whether less is left than must be. was: it was so at the last observation, so that more must be free
// now.
func (t Threshold) crossed(seen Observations, was bool) bool {
	o, ok := seen[t.Signal]
	if !ok {
		return false
	}
	least := t.Value.of(o.Capacity)
	if was {
		least += t.MinReclaim.of(o.Capacity)
	}
	return o.Available < least
}

// Grace returns how long an evicted pod gets for its end. Under a hard threshold that is at most a second: the node
// cannot wait.
func (p Policy) Grace(t Threshold, pod *corev1.Pod) time.Duration {
	own := 30 * time.Second
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		own = runtime.Seconds(*s)
	}
	switch {
	case t.Hard():
		return min(own, time.Second)
	case p.MaxPodGrace < 0:
		return own
	}
	return min(own, p.MaxPodGrace)
}
