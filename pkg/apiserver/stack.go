package apiserver

import "runtime"

// growStack makes the goroutine's stack grow at once to what most requests need. Each request has a goroutine of its
// own, which begins with a few KiB. If the stack grows later, deep in the handlers, all frames are copied, which was 7
// % of the CPU of a get. Streams keep the small stack, because they last.
//
// go:noinline must stay: inlined, the array would be part of the caller's frame, which lasts.
func growStack() {
	var room [10 << 10]byte
	runtime.KeepAlive(&room)
}
