package executor

import (
	"context"
	goruntime "runtime"
	"sync"
	"time"
)

// turnLength is how long a sandbox has its turn at most. One that takes longer waits for something (a plug-in of the
// pod network, as a rule) rather than for the processor, and must not keep other pods from starting.
const turnLength = time.Second

// turns are had by those who make sandboxes: a few at a time, first come, first served. The runtime takes as many at
// once as it is given, and shares the processors among all of them and the containers of the pods before: of many pods
// that begin together none would run until nearly all of them do. With turns the first pods' containers run while the
// last pods' sandboxes wait.
type turns struct{ free chan struct{} }

// newTurns has two turns at a time for each processor, as a part of what is done waits for the disk and the kernel.
func newTurns() turns { return turns{free: make(chan struct{}, 2*goruntime.NumCPU())} }

// take waits for a turn. release gives it back, which turnLength does too; it may be called twice.
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
