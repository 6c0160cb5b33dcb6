package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// lateHeap is how much later than usual the first garbage collection comes, in percent: at some 16 MB, which most
// commands never reach. Their start costs a quarter less CPU for it, and no more memory.
const lateHeap = 400

// collectLate puts the first garbage collection off; those that follow it come as usual, for the commands that need
// much memory. $GOGC says more than it.
func collectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(lateHeap)
	runtime.AddCleanup(&struct{ unreachable *int }{}, func(percent int) { debug.SetGCPercent(percent) }, usual)
}
