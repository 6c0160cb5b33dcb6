package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// garbageFloor and garbageShare are how much garbage may lie beside the live heap before it is collected: the
	// floor, and a share of the live heap. Most of a large heap is cached bytes, which a collection hardly touches; so
	// it can come sooner than Go's default, which is as much garbage as there is live heap.
	garbageFloor = 20 << 20
	garbageShare = 0.2
	// smallHeap is what a heap may grow to in a burst before it is collected, however little of it is live, in bytes:
	// by Go's default a live heap of 6 MB is collected eight times a second while pods are created, which is a tenth of
	// their CPU.
	smallHeap = 32 << 20
	// heapEvery is how often the live heap is looked at.
	heapEvery = time.Second
)

// garbageBeside is how much garbage may lie beside a live heap, in bytes: at rest never more than Go's default, which
// is as much again.
func garbageBeside(live uint64, burst bool) float64 {
	garbage := garbageFloor + garbageShare*float64(live)
	if burst {
		return max(garbage, smallHeap-float64(live))
	}
	return min(garbage, float64(live))
}

// gcPercent is Go's GOGC for a live heap of so many bytes.
func gcPercent(live uint64, burst bool) int {
	if live == 0 {
		return 100 // nothing has been collected yet
	}
	percent := int(100 * garbageBeside(live, burst) / float64(live))
	if percent < 100 { // in steps, as every change stops the process for a moment
		return percent / 5 * 5
	}
	return percent / 50 * 50
}

// A burst is over when less than calmBytes have been allocated in each of calmFor rounds. What it left is given back
// then, if that is at least half of the garbage that may lie there anyway: Go would keep it until so much is allocated
// again, hours at rest.
const (
	calmBytes = 4 << 20 // in a round
	calmFor   = 5
)

// heap is what one round sees, in bytes.
type heap struct {
	live      uint64 // what the last collection found
	unused    uint64 // garbage since then, and what is free but still held
	allocated uint64 // since the process began
}

// calm finds the ends of bursts.
type calm struct {
	allocated uint64
	rounds    int // without a burst, since the last one; calmFor: it has been dealt with
}

// over reports whether a burst has ended whose remains are worth to be given back. It does so once for each.
func (c *calm) over(h heap) bool {
	grown := h.allocated - c.allocated
	c.allocated = h.allocated
	if grown >= calmBytes {
		c.rounds = 0
		return false
	}
	if !c.burst() {
		return false
	}
	c.rounds++
	return !c.burst() && float64(h.unused) >= garbageBeside(h.live, false)/2
}

// burst reports whether the last round belongs to a burst.
func (c *calm) burst() bool { return c.rounds < calmFor }

// keepHeapSmall adjusts the garbage collector to the live heap, and gives back what bursts leave, until ctx ends,
// unless the environment says how it should be.
func keepHeapSmall(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	tick := time.NewTicker(heapEvery)
	defer tick.Stop()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	var quiet calm
	for percent := 100; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		metrics.Read(sample)
		value := func(i int) uint64 { return sample[i].Value.Uint64() }
		h := heap{live: value(0), unused: value(2), allocated: value(3)}
		if objects := value(1); objects > h.live {
			h.unused += objects - h.live
		}
		over := quiet.over(h)
		if want := gcPercent(h.live, quiet.burst()); want != percent {
			percent = want
			debug.SetGCPercent(percent)
		}
		if over {
			debug.FreeOSMemory()
		}
	}
}
