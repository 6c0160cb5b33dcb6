package kms

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"
)

// TestBound: beyond the bound, the source that was used longest ago goes, and not one that a plug-in is asked for.
func TestBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sources{now: time.Now, kept: map[sourceID]*keptSource{}}
		id := func(n int) (id sourceID) {
			binary.BigEndian.PutUint64(id[:], uint64(n))
			return id
		}
		asked, answer := 0, make(chan struct{})
		slow := func(context.Context) (*source, error) {
			asked++
			<-answer
			return &source{}, nil
		}
		for range 2 {
			go s.get(t.Context(), id(0), slow) //nolint:errcheck // the bound is what is looked at
			synctest.Wait()
			for n := 1; n <= maxSources; n++ {
				s.put(id(n), &source{})
				time.Sleep(time.Millisecond)
			}
		}
		if asked != 1 {
			t.Errorf("the plug-in was asked %d times for one source", asked)
		}
		if s.has(id(1)) {
			t.Error("the source that was used longest ago is still there")
		}
		if n := s.size(); n != maxSources {
			t.Errorf("%d sources are kept, not %d", n, maxSources)
		}
		close(answer)
		s.tasks.Wait()
	})
}
