package podautoscaler

import (
	"errors"
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// The algorithm is that of
// https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/#algorithm-details.

// tolerances are how far below and above 1 the ratio of a metric to its target may be before the size changes.
//
// They keep a target near its goal from being scaled up and down in turns. spec.behavior may set one for each direction
// (KEP-4951).
type tolerances struct{ down, up float64 }

func (o *observation) tolerances() tolerances {
	t := tolerances{o.config.Tolerance, o.config.Tolerance}
	b := o.autoscaler.Spec.Behavior
	if b != nil && b.ScaleDown != nil && b.ScaleDown.Tolerance != nil {
		t.down = b.ScaleDown.Tolerance.AsApproximateFloat64()
	}
	if b != nil && b.ScaleUp != nil && b.ScaleUp.Tolerance != nil {
		t.up = b.ScaleUp.Tolerance.AsApproximateFloat64()
	}
	return t
}

func (t tolerances) accept(ratio float64) bool { return 1-t.down <= ratio && ratio <= 1+t.up }

// whole rounds up to a number of replicas.
func whole(n float64) int32 {
	return int32(min(math.Ceil(n), math.MaxInt32))
}

// usage is how a metric of pods compares with its target.
type usage struct {
	ratio float64
	// utilization is the percentage of the requests, average the milli-units of one pod.
	utilization int32
	average     int64
}

// measure compares the values of some pods with the target. values must not be empty.
type measure func(values map[string]podValue) (usage, error)

// byAverage compares the average with a target of milli-units.
//
// Integers, as in the APIs: a fraction of a milli-unit is dropped.
func byAverage(target int64) measure {
	return func(values map[string]podValue) (usage, error) {
		average := total(values) / int64(len(values))
		return usage{ratio: float64(average) / float64(target), average: average}, nil
	}
}

// byRequests compares the usage with a target in percent of the requests.
//
// Used and asked are summed before they are divided: pods with larger requests weigh more.
func byRequests(asked map[string]int64, target int32) measure {
	return func(values map[string]podValue) (usage, error) {
		var sum int64
		for name := range values {
			sum += asked[name]
		}
		if sum == 0 {
			return usage{}, errors.New("no metrics returned matched known pods")
		}
		used := total(values)
		utilization := int32(min(used*100/sum, math.MaxInt32))
		return usage{float64(utilization) / float64(target), utilization, used / int64(len(values))}, nil
	}
}

func total(values map[string]podValue) int64 {
	var sum int64
	for _, v := range values {
		sum += v.value
	}
	return sum
}

// ofPods returns how many replicas bring the pods' average to the target, and what the ready pods use. Pods without a
// value are assumed to use what damps the change: a missing one 0 on the way up and missingDown on the way down, an
// unready one 0 on the way up. The number stays as it is within the tolerance, or if the assumptions would turn the
// direction. It is an error if no pod is ready.
//
// The assumptions are those that the algorithm documents: they make a change smaller, never larger.
func (o *observation) ofPods(s sorted, m measure, missingDown func(pod string) int64) (int32, usage, error) {
	if len(s.ready) == 0 {
		return 0, usage{}, errors.New("did not receive metrics for targeted pods (pods might be unready)")
	}
	seen, err := m(s.ready)
	if err != nil {
		return 0, usage{}, err
	}
	tolerated := o.tolerances()
	up := seen.ratio > 1
	// Nothing has to be assumed. On the way down unready pods are not added: they would only lower the average.
	if len(s.missing) == 0 && (len(s.unready) == 0 || !up) {
		if tolerated.accept(seen.ratio) {
			return o.wanted, seen, nil
		}
		return whole(seen.ratio * float64(len(s.ready))), seen, nil
	}
	all := map[string]podValue{}
	for name, v := range s.ready {
		all[name] = v
	}
	for _, name := range s.missing {
		switch {
		case up:
			all[name] = podValue{}
		case seen.ratio < 1:
			all[name] = podValue{value: missingDown(name)}
		}
	}
	if up {
		for _, name := range s.unready {
			all[name] = podValue{}
		}
	}
	damped, err := m(all)
	if err != nil {
		return 0, usage{}, err
	}
	// What was only assumed must never turn the direction, or scale where the measured pods are within the tolerance.
	if tolerated.accept(damped.ratio) || seen.ratio < 1 && damped.ratio > 1 || up && damped.ratio < 1 {
		return o.wanted, seen, nil
	}
	// The new size is for all pods that were counted, but may still be on the wrong side of the present size, because
	// pods that fail or terminate are in the size and not in the count.
	n := whole(damped.ratio * float64(len(all)))
	if damped.ratio < 1 && n > o.wanted || damped.ratio > 1 && n < o.wanted {
		n = o.wanted
	}
	return n, seen, nil
}

// ofValue returns how many replicas bring one value, to which all pods contribute, to the target.
//
// Without replicas there is no ratio to go by: the value in targets is the size to begin with (scale from zero).
func (o *observation) ofValue(value, target int64) (int32, error) {
	ratio := float64(value) / float64(target)
	if o.wanted == 0 {
		return whole(ratio), nil
	}
	if o.tolerances().accept(ratio) {
		return o.wanted, nil
	}
	if len(o.pods) == 0 {
		return 0, errNoPods()
	}
	return whole(ratio * float64(readyPods(o.pods))), nil
}

func errNoPods() error {
	return errors.New("no pods returned by selector while calculating replica count")
}

// ofShare returns how many replicas bring each replica's share of a value to the target, and the share of one present
// replica, rounded up. The share is 0 without replicas.
//
// present and not wanted: the share is of replicas that exist and serve.
func (o *observation) ofShare(value, target int64) (replicas int32, share int64) {
	replicas = o.present
	ratio := float64(value) / (float64(target) * float64(replicas))
	if replicas == 0 || !o.tolerances().accept(ratio) {
		replicas = whole(float64(value) / float64(target))
	}
	if o.present > 0 {
		share = int64(math.Ceil(float64(value) / float64(o.present)))
	}
	return replicas, share
}

// fallbackUtilization is the percentage of its request that a pod without a value is assumed to use on the way down.
//
// At least its whole request, and at least the target: a pod that is not measured never makes the target look idle.
func fallbackUtilization(target int32) int64 { return int64(max(100, target)) }

func average(t *autoscalingv2.MetricTarget) (int64, bool) {
	if t.AverageValue == nil {
		return 0, false
	}
	return t.AverageValue.MilliValue(), true
}
