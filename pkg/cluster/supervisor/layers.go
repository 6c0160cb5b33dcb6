package supervisor

import (
	"context"
	"slices"
	"sync"
)

// layers are the parts of a cluster in the order of their starts. Each needs those before it until it has ended, and so
// they end in the reverse order, one after the other.
type layers struct {
	life context.Context // it outlives the supervisor's own context: an end takes time
	ends []func()
}

// run runs all functions of one layer until its end comes, which waits for them.
func (l *layers) run(all ...func(context.Context)) {
	ctx, stop := context.WithCancel(l.life)
	var running sync.WaitGroup
	for _, f := range all {
		running.Go(func() { f(ctx) })
	}
	l.atEnd(func() { stop(); running.Wait() })
}

// atEnd adds a layer that runs already; end ends it and waits until it has ended.
func (l *layers) atEnd(end func()) { l.ends = append(l.ends, end) }

// end ends all layers.
func (l *layers) end() {
	for _, end := range slices.Backward(l.ends) {
		end()
	}
}
