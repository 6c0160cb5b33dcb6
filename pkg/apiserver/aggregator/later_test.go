package aggregator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Who wants a document is told the last one while a newer one is asked for, and waits only if there was none, and not
// for long.
func TestLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l later
		slow := time.Hour
		asked, failure := 0, error(nil)
		get := func() (string, time.Duration) {
			start := time.Now()
			body := l.get(t.Context(), t.Context(), time.Now, func(ctx context.Context) ([]byte, error) {
				asked++
				n := asked
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(slow):
					return []byte{'0' + byte(n)}, failure
				}
			})
			return string(body), time.Since(start)
		}
		expect := func(what, body string, waited time.Duration, times int) {
			t.Helper()
			got, took := get()
			synctest.Wait() // who is asked in the background has been
			if got != body || took != waited || asked != times {
				t.Errorf("%s: %q after %s, asked %d times; want %q after %s, %d times", what, got, took, asked, body,
					waited, times)
			}
		}
		expect("a server that does not answer", "", firstWait, 1)
		expect("still", "", firstWait, 1)
		time.Sleep(fetchTimeout)
		expect("it has failed", "", 0, 1)
		slow = time.Second
		time.Sleep(goodFor)
		expect("it is asked again", "", 0, 2)
		time.Sleep(slow)
		synctest.Wait()
		expect("it has answered", "2", 0, 2)
		time.Sleep(goodFor)
		expect("the last one", "2", 0, 3)
		time.Sleep(slow)
		synctest.Wait()
		expect("the next one", "3", 0, 3)
		failure = errors.New("broken")
		time.Sleep(goodFor)
		expect("it breaks", "3", 0, 4)
		time.Sleep(slow)
		synctest.Wait()
		expect("it is broken", "3", 0, 4)
	})
}
