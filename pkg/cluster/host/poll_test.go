package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPoll: a question is asked at every interval, and more seldom when the wait is long.
func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		asked := 0
		if err := Poll(t.Context(), 50*time.Millisecond, func() (bool, error) {
			asked++
			return time.Since(begun) >= time.Minute, nil
		}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 63*time.Second || asked > 110 {
			t.Errorf("a wait of a minute took %v and %d questions", took, asked)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		never := func() (bool, error) { return false, nil }
		if err := Poll(ctx, 50*time.Millisecond, never); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait that ends: %v", err)
		}
	})
}
