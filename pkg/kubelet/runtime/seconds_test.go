package runtime

import (
	"math"
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]time.Duration{0: 0, 30: 30 * time.Second, -1: -time.Second,
		math.MaxInt64: century * time.Second, 10_000_000_000: century * time.Second,
		math.MinInt64: -century * time.Second} {
		if got := Seconds(n); got != want || time.Now().Add(got).After(time.Now()) != (n > 0) || got+time.Hour < got {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
