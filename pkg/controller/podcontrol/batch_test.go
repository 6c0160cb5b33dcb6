package podcontrol

import (
	"errors"
	"testing"
)

func TestSlowStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, failAt, want int }{{10, 0, 10}, {0, 0, 0}, {1000, 1, 1}, {1000, 4, 7}} {
		calls := make(chan struct{}, 1000)
		got, err := slowStart(c.n, func(int) error {
			calls <- struct{}{}
			if c.failAt > 0 && len(calls) >= c.failAt {
				return errors.New("no")
			}
			return nil
		})
		if got != c.want || len(calls) != got || (err != nil) != (c.failAt > 0) {
			t.Errorf("slowStart(%d, fail at %d) = %d, %v after %d calls, want %d", c.n, c.failAt, got, err, len(calls),
				c.want)
		}
	}
}
