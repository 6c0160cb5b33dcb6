package queueset

import (
	"math"
	"time"
)

// Demand is how many seats were asked for, taken or waited for, over a time.
type Demand struct {
	High           int
	Average, StDev float64
}

// meter adds up the demand of a period. It holds three sums and no samples: the memory does not depend on how often the
// demand changes.
type meter struct {
	high         int
	sum, squares float64 // times seconds
	span         float64 // seconds
}

// pass adds a stretch of time in which the demand was constant. The Set calls it before each change, so averages weigh
// a demand by how long it lasted, and a burst of many short requests does not count more than one long one.
func (m *meter) pass(demand int, seconds float64) {
	d := float64(demand)
	m.sum += d * seconds
	m.squares += d * d * seconds
	m.span += seconds
}

// read computes the variance as the mean of the squares minus the square of the mean. Rounding can make that slightly
// negative, hence the max. A period without any time reports the present demand.
func (m *meter) read(demand int) Demand {
	out := Demand{High: m.high, Average: float64(demand)}
	if m.span > 0 {
		out.Average = m.sum / m.span
		out.StDev = math.Sqrt(max(0, m.squares/m.span-out.Average*out.Average))
	}
	return out
}

// Demand is that since the last call, and begins a new period. The dispatcher calls it every adjustEvery and at each
// rebuild. High starts at the present demand: requests that are still there are part of the new period.
func (s *Set) Demand(now time.Duration) Demand {
	s.advance(now)
	out := s.meter.read(s.demand())
	s.meter = meter{high: s.demand()}
	return out
}
