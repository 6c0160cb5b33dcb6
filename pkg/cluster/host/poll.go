package host

import (
	"context"
	"time"
)

// Poll calls done at once and then at every interval until it returns true or an error, or ctx ends. Then it returns
// the cause of that end.
func Poll(ctx context.Context, interval time.Duration, done func() (bool, error)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
