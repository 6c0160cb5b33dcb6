package host

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// patience bounds a wait by its progress: a slow machine may take long, but not without anything happening.
type patience struct {
	atMost time.Duration

	mu    sync.Mutex
	seen  map[string]bool // milestones; each counts once, so that what goes up and down again is no progress
	timer *time.Timer
}

// patienceKey is the key of a context's *patience.
type patienceKey struct{}

// WithPatience returns a context that ends when nothing has progressed for atMost: no step was done, no process began,
// no node came nearer to being Ready.
func WithPatience(ctx context.Context, atMost time.Duration) (context.Context, context.CancelFunc) {
	ctx, fail := context.WithCancelCause(ctx)
	p := &patience{atMost: atMost, seen: map[string]bool{}}
	p.timer = time.AfterFunc(atMost, func() { fail(fmt.Errorf("no progress for %s (--wait)", atMost)) })
	return context.WithValue(ctx, patienceKey{}, p), func() { p.timer.Stop(); fail(nil) }
}

// Progressed notes a milestone of the wait that ctx bounds, if it is one.
func Progressed(ctx context.Context, milestone string) {
	p, ok := ctx.Value(patienceKey{}).(*patience)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.seen[milestone] && p.timer.Stop() { // a wait that has ended stays so
		p.seen[milestone] = true
		p.timer.Reset(p.atMost)
	}
}

// HasPatience reports whether ctx bounds a wait by its progress.
func HasPatience(ctx context.Context) bool { return ctx.Value(patienceKey{}) != nil }
