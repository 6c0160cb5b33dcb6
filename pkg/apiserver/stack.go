package apiserver

import "runtime"

// growStack has the goroutine's stack grow at once to what most requests need. A goroutine of its own serves each
// request, and begins with a few KiB; where it finds out deep down that they are too few, each frame from there up is
// copied, which was 7 % of the CPU of a get. Streams keep the small stack: theirs last.
//
//go:noinline
func growStack() {
	var room [10 << 10]byte
	runtime.KeepAlive(&room)
}
