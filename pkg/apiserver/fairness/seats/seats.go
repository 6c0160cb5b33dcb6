// Package seats divides a server's seats among its priority levels: how many a level has by its configuration, and how
// many it has for now, as levels lend to each other what they do not need. All of it is KEP-1040's ("Dispatching"), as
// pure functions.
package seats

import "math"

// Shares are what a level's configuration says of its seats.
type Shares struct {
	// Nominal is the level's part of all, as a ratio.
	Nominal int
	// Lendable is how much of its seats it may lend, in percent.
	Lendable int
	// Borrowing is how many seats it may borrow at most, in percent of its own; negative: no limit.
	Borrowing int
}

// Limits are a level's seats: its own, and the least and the most that it may have for now.
type Limits struct{ Nominal, Min, Max int }

// Divide gives each of levels its part of total.
func Divide(total int, levels []Shares) []Limits {
	sum := 0
	for _, l := range levels {
		sum += l.Nominal
	}
	out := make([]Limits, len(levels))
	for i, l := range levels {
		n := 0
		if sum > 0 {
			n = int(math.Ceil(float64(total) * float64(l.Nominal) / float64(sum)))
		}
		out[i] = Limits{Nominal: n, Min: n - percent(n, l.Lendable), Max: total}
		if n > 0 {
			// On a small server a part may be a seat. Who has shares has a seat, so that his work goes on.
			out[i].Min = max(1, out[i].Min)
		}
		if l.Borrowing >= 0 {
			out[i].Max = min(total, n+percent(n, l.Borrowing))
		}
		out[i].Max = max(out[i].Max, n)
	}
	return out
}

func percent(n, p int) int { return int(math.Round(float64(n) * float64(p) / 100)) }

// Demand is what is known of a level when its seats for now are decided on.
type Demand struct {
	Limits
	// High is the most seats that were asked for in the period that is over, Smooth what was asked for lately.
	High   int
	Smooth float64
	// Exempt levels take what they want; what they take the others do not have.
	Exempt bool
}

// Share is what a level has for now, and what it should have if there were enough.
type Share struct {
	Current int
	Target  float64
}

// Adjust decides how many of total seats each level has for now. fair is the part of its target that each gets which no
// bound keeps from it.
func Adjust(total int, levels []Demand) (shares []Share, fair float64) {
	shares = make([]Share, len(levels))
	low := make([]int, len(levels))
	left, wiggle := total, false
	for i, l := range levels {
		if l.Exempt {
			shares[i] = Share{Current: max(l.Min, min(total, int(math.Round(l.Smooth)))), Target: l.Smooth}
			left -= shares[i].Current
			continue
		}
		low[i] = max(l.Min, min(l.Nominal, l.High))
		shares[i].Target = max(float64(low[i]), l.Smooth)
		wiggle = wiggle || low[i] < l.Nominal
	}
	current := func(i int, p float64) float64 {
		return min(float64(levels[i].Max), max(float64(low[i]), p*shares[i].Target))
	}
	if fair = 1; wiggle {
		fair = level(left, levels, current)
	}
	for i, l := range levels {
		switch {
		case l.Exempt:
		case !wiggle:
			shares[i].Current = l.Nominal
		default:
			shares[i].Current = int(math.Round(current(i, fair)))
		}
	}
	return shares, fair
}

// level finds the proportion at which the levels' seats add up to left. Their sum only grows with it, so it is halved
// in on.
func level(left int, levels []Demand, current func(i int, p float64) float64) float64 {
	sum := func(p float64) (all float64) {
		for i, l := range levels {
			if !l.Exempt {
				all += current(i, p)
			}
		}
		return all
	}
	high := 1.0
	for range 40 { // beyond, more proportion brings no more seats
		if sum(high) >= float64(left) {
			break
		}
		high *= 2
	}
	low := 0.0
	for range 60 {
		if mid := (low + high) / 2; sum(mid) < float64(left) {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// keepsOf is how much of the past remains in Smooth for each period.
const keepsOf = 0.9

// Smooth is what is asked for lately, by what was before and by the average and the standard deviation of the period
// that is over. It rises at once and falls slowly.
func Smooth(before, average, deviation float64) float64 {
	envelope := average + deviation
	return max(envelope, keepsOf*before+(1-keepsOf)*envelope)
}
