package kubelet

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// loops records what the runners of a test do.
type loops struct {
	mu     sync.Mutex
	events []string
}

func (l *loops) note(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, what)
}

// runner works until its context ends, or until fail is closed.
func (l *loops) runner(name string, fail <-chan struct{}) runner {
	return runner{name, func(ctx context.Context) error {
		l.note(name + " runs")
		defer l.note(name + " ends")
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-fail:
			return errors.New("broken")
		}
	}}
}

// TestRunAll: all run until the context ends, or until one fails, which ends the others and is returned by name.
func TestRunAll(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"the context ends": false, "a runner fails": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, fail := &loops{}, make(chan struct{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error)
				go func() {
					done <- runAll(ctx,
						[]runner{l.runner("a", nil), l.runner("b", fail), l.runner("c", nil)})
				}()
				synctest.Wait()
				slices.Sort(l.events)
				if want := []string{"a runs", "b runs", "c runs"}; !slices.Equal(l.events, want) {
					t.Errorf("%v, want %v", l.events, want)
				}
				l.events = nil
				want := ""
				if fails {
					want = "b: broken"
					close(fail)
				} else {
					cancel()
				}
				got := ""
				if err := <-done; err != nil {
					got = err.Error()
				}
				slices.Sort(l.events)
				if ended := []string{"a ends", "b ends", "c ends"}; got != want || !slices.Equal(l.events, ended) {
					t.Errorf("%q after %v, want %q after %v", got, l.events, want, ended)
				}
			})
		})
	}
}
