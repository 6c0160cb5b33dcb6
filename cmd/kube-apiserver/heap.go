package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// garbageFloor and garbageShare are how much garbage may lie beside the live heap before it is collected: the floor, and a
	// share of the live heap. Most of a large heap is cached bytes, which a collection hardly touches; so it can come sooner than
	// Go's default, which is as much garbage as there is live heap.
	garbageFloor = 20 << 20
	garbageShare = 0.2
	// heapEvery is how often the live heap is looked at.
	heapEvery = time.Second
)

// gcPercent is Go's GOGC for a live heap of so many bytes: never more garbage than the default of 100 would allow.
func gcPercent(live uint64) int {
	if live <= garbageFloor {
		return 100
	}
	percent := int(100 * (garbageFloor + garbageShare*float64(live)) / float64(live))
	return min(percent/5*5, 100) // in steps, as every change stops the process for a moment
}

// keepHeapSmall adjusts the garbage collector to the live heap until ctx ends, unless the environment says how it shall be.
func keepHeapSmall(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	tick := time.NewTicker(heapEvery)
	defer tick.Stop()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for percent := 100; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		metrics.Read(sample)
		if want := gcPercent(sample[0].Value.Uint64()); want != percent {
			percent = want
			debug.SetGCPercent(percent)
		}
	}
}
