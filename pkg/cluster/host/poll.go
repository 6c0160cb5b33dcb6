package host

import (
	"context"
	"time"
)

// Poll calls done at once and then at every interval until it returns true or an error, or ctx ends. Then it returns
// the cause of that end. A wait that takes long asks less often: on a machine so slow that the wait is long, the
// questions would take the processor from what is waited for. Nobody waits more than a twentieth longer for it.
func Poll(ctx context.Context, interval time.Duration, done func() (bool, error)) error {
	begun := time.Now()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		next := time.NewTimer(max(interval, time.Since(begun)/20))
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return context.Cause(ctx)
		}
	}
}
