package main

import (
	"slices"
	"testing"
)

func TestGCPercent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		live        uint64 // MiB
		rest, burst int
	}{{0, 100, 100}, {6, 100, 400}, {10, 100, 200}, {18, 100, 100}, {25, 100, 100}, {32, 80, 80}, {57, 55, 55},
		{127, 35, 35}, {1000, 20, 20}, {1 << 30, 20, 20}} {
		if got := gcPercent(c.live<<20, false); got != c.rest {
			t.Errorf("%d MiB: %d %%, want %d %%", c.live, got, c.rest)
		}
		if got := gcPercent(c.live<<20, true); got != c.burst {
			t.Errorf("%d MiB in a burst: %d %%, want %d %%", c.live, got, c.burst)
		}
	}
}

// TestBurstIsGivenBackOnce: some seconds after the last round of a burst, if it left much; never at rest, and not while
// it goes on.
func TestBurstIsGivenBackOnce(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for _, c := range []struct {
		name  string
		h     heap     // except for what is allocated
		grown []uint64 // in each round
		want  []int    // rounds
	}{
		{"a burst", heap{live: 100 * mb, unused: 30 * mb},
			[]uint64{50 * mb, 50 * mb, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, []int{6}},
		{"one that pauses", heap{live: 100 * mb, unused: 30 * mb},
			[]uint64{50 * mb, 1, 1, 1, 1, 4 * mb, 1, 1, 1, 1, 1, 1}, []int{10}},
		{"one that left little", heap{live: 100 * mb, unused: 19 * mb}, []uint64{50 * mb, 1, 1, 1, 1, 1, 1, 1}, nil},
		{"two", heap{unused: 10 * mb}, []uint64{9 * mb, 1, 1, 1, 1, 1, 1, 9 * mb, 1, 1, 1, 1, 1, 1}, []int{5, 12}},
		{"rest", heap{unused: 30 * mb},
			[]uint64{9 * mb, 1, 1, 1, 1, 1, 3 * mb, 3 * mb, 3 * mb, 3 * mb, 3 * mb, 3 * mb, 3 * mb}, []int{5}},
	} {
		var quiet calm
		var got []int
		for round, grown := range c.grown {
			c.h.allocated += grown
			if quiet.over(c.h) {
				got = append(got, round)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: given back in rounds %v, want %v", c.name, got, c.want)
		}
	}
}
