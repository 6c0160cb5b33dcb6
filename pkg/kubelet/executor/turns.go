package executor

import (
	"context"
	goruntime "runtime"
	"sync"
	"time"
)

// turnLength is the longest time that a sandbox keeps its turn. A sandbox that takes longer waits for something, as a
// rule for a plug-in of the pod network, rather than for the processor, and must not keep other pods from starting.
const turnLength = time.Second

// turns limits how many sandboxes are made at a time, first come, first served. The runtime accepts any number at once
// and shares the processors among all of them and the containers of earlier pods: of many pods that begin together,
// none would run until nearly all of them do. With turns, the containers of the first pods run while the sandboxes of
// the last pods wait.
type turns struct{ free chan struct{} }

// newTurns has two turns at a time for each processor, as a part of what is done waits for the disk and the kernel.
func newTurns() turns { return turns{free: make(chan struct{}, 2*goruntime.NumCPU())} }

// take waits for a turn. release gives it back, which turnLength does too; it may be called twice.
//
// The turn comes back by itself after turnLength, while the sandbox is still being made.
func (t turns) take(ctx context.Context) (release func(), err error) {
	select {
	case t.free <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	back := sync.OnceFunc(func() { <-t.free })
	timer := time.AfterFunc(turnLength, back)
	return func() { timer.Stop(); back() }, nil
}
