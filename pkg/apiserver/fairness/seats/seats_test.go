package seats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// The seats of a kube-apiserver v1.36.3 with its default levels and 600 seats in all, as its metrics show them.
func TestDivide(t *testing.T) {
	t.Parallel()
	got := Divide(600, []Shares{
		{0, 0, -1}, {5, 0, -1}, {20, 50, -1}, {10, 0, -1}, {40, 25, -1}, {30, 33, -1}, {40, 50, -1}, {100, 90, -1},
		{0, 0, 0},
	})
	want := "[{0 0 600} {13 13 600} {49 24 600} {25 25 600} {98 73 600} {74 50 600} {98 49 600} {245 24 600} {0 0 0}]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
	// A limit on borrowing, and a level that would have nothing left if it lent all.
	if got := fmt.Sprint(Divide(10, []Shares{{1, 100, 50}, {1, 100, 0}})); got != "[{5 1 8} {5 1 5}]" {
		t.Errorf("got %s", got)
	}
}

// Whatever is asked for, each level stays within its bounds, all seats are given away unless the bounds forbid it, and
// who gets less of its target than another is at its most, or the other at its least.
func TestAdjust(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		shares := make([]Shares, 1+random.IntN(9))
		for i := range shares {
			shares[i] = Shares{Nominal: random.IntN(60), Lendable: random.IntN(101), Borrowing: random.IntN(300) - 100}
		}
		total := 1 + random.IntN(700)
		levels := make([]Demand, len(shares))
		least, most := 0, 0
		for i, l := range Divide(total, shares) {
			levels[i] = Demand{Limits: l, High: random.IntN(2 * (l.Nominal + 1)),
				Smooth: random.Float64() * float64(2*l.Nominal), Exempt: i == 0 && random.IntN(2) == 0}
		}
		got, fair := Adjust(total, levels)
		sum, left, exempt := 0, total, 0
		for i, l := range levels {
			low := max(l.Min, min(l.Nominal, l.High))
			if l.Exempt {
				left -= got[i].Current
				exempt++
				continue
			}
			least, most = least+low, most+l.Max
			sum += got[i].Current
			if c := got[i].Current; c < low || c > l.Max {
				t.Fatalf("%v of %v: %d seats, not from %d to %d", i, levels, c, low, l.Max)
			}
			if share := float64(got[i].Current); math.Abs(share-fair*got[i].Target) > 0.51 && got[i].Current != low &&
				got[i].Current != l.Max && fair != 1 {
				t.Fatalf("%d has %v seats at the proportion %v of %v, and no bound is near", i, share, fair,
					got[i].Target)
			}
		}
		n := len(levels) - exempt
		if want := max(least, min(most, left)); n > 0 && fair != 1 && (sum < want-n || sum > want+n) {
			reachable := 0.0
			for i, l := range levels {
				if !l.Exempt && got[i].Target > 0 {
					reachable++
				}
			}
			if reachable == float64(n) {
				t.Fatalf("%d seats of %d were given away, bounds %d and %d: %v %v", sum, left, least, most, levels, got)
			}
		}
	}
}

// A quiet level's seats go to a busy one, and come back when they are asked for.
func TestBorrowing(t *testing.T) {
	t.Parallel()
	limits := Divide(600, []Shares{{100, 90, -1}, {20, 50, -1}})
	quiet, busy := Demand{Limits: limits[0]}, Demand{Limits: limits[1], High: 900, Smooth: 900}
	got, _ := Adjust(600, []Demand{quiet, busy})
	if got[0].Current != limits[0].Min || got[1].Current != 550 {
		t.Errorf("a quiet and a busy level: %v", got)
	}
	quiet.High, quiet.Smooth = 700, 700
	if got, _ := Adjust(600, []Demand{quiet, busy}); got[0].Current != limits[0].Nominal ||
		got[1].Current != limits[1].Nominal {
		t.Errorf("two busy levels: %v, want %v", got, limits)
	}
	if s := Smooth(10, 20, 5); s != 25 {
		t.Errorf("rises to %v", s)
	}
	if s := Smooth(10, 0, 0); s != 9 {
		t.Errorf("falls to %v", s)
	}
}
