package executor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns: no more at once than there are turns; who has had one for long makes room, and giving it back twice gives
// one back.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := turns{free: make(chan struct{}, 2)}
		first, err := turns.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := turns.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		had := make(chan time.Duration)
		for range 2 {
			go func() {
				if _, err := turns.take(t.Context()); err != nil {
					t.Error(err)
				}
				had <- time.Since(begun)
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), turnLength/2)
		defer cancel()
		if _, err := turns.take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a third turn where there are two: %v", err)
		}
		first()
		first()
		if took := <-had; took != turnLength/2 {
			t.Errorf("a turn that was given back was had again after %v", took)
		}
		if took := <-had; took != turnLength {
			t.Errorf("a turn of one who kept it was had again after %v, expected %v", took, turnLength)
		}
		synctest.Wait()
		time.Sleep(2 * turnLength)
		if n := len(turns.free); n != 0 {
			t.Errorf("%d turns are still had", n)
		}
	})
}
