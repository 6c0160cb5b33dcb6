package main

import "testing"

func TestGCPercent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		live uint64 // MiB
		want int
	}{{0, 100}, {10, 100}, {25, 100}, {32, 80}, {57, 55}, {127, 35}, {1000, 20}, {1 << 30, 20}} {
		if got := gcPercent(c.live << 20); got != c.want {
			t.Errorf("%d MiB: %d %%, want %d %%", c.live, got, c.want)
		}
	}
}
