package main

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

// TestCollectLate: the first collection is put off, and only the first.
func TestCollectLate(t *testing.T) {
	t.Setenv("GOGC", "")
	percent := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	usual := percent()
	collectLate()
	if got := percent(); got != lateHeap {
		t.Fatalf("the first collection comes at %d percent, want %d", got, lateHeap)
	}
	for range 100_000 {
		runtime.GC()
		if percent() == usual {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("after a collection it is %d percent, want %d", percent(), usual)
}
