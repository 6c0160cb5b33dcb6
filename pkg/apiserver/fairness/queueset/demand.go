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

// meter adds up the demand of a period.
type meter struct {
	high         int
	sum, squares float64 // times seconds
	span         float64 // seconds
}

func (m *meter) pass(demand int, seconds float64) {
	d := float64(demand)
	m.sum += d * seconds
	m.squares += d * d * seconds
	m.span += seconds
}

func (m *meter) read(demand int) Demand {
	out := Demand{High: m.high, Average: float64(demand)}
	if m.span > 0 {
		out.Average = m.sum / m.span
		out.StDev = math.Sqrt(max(0, m.squares/m.span-out.Average*out.Average))
	}
	return out
}

// Demand is that since the last call, and begins a new period.
func (s *Set) Demand(now time.Duration) Demand {
	s.advance(now)
	out := s.meter.read(s.demand())
	s.meter = meter{high: s.demand()}
	return out
}
