// Package pleg makes events of what happens to pods in the container runtime ("pod lifecycle event generator"). The
// runtime's own events are used where it has them; a relist, compared with the one before by a pure function, is the
// safety net, and the only source otherwise.
package pleg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/runtime"
)

// Runtime is what is watched.
type Runtime interface {
	Pods(ctx context.Context) ([]*runtime.PodStatus, error)
	Events(ctx context.Context, connected func(), changed func(types.UID)) error
}

// Config is what a Generator needs.
type Config struct {
	Runtime Runtime
	// Observe, if set, is called with the result of each list. It must not block for long.
	Observe func(begun time.Time, took time.Duration, pods []*runtime.PodStatus, err error)
	// Unsupported is the error that Runtime.Events gives where there are none.
	Unsupported error
	// Period is the time between relists without events (default 1 s), SlowPeriod with them (default 10 s).
	Period, SlowPeriod time.Duration
	Log                *slog.Logger
}

// Generator watches one runtime.
type Generator struct {
	cfg    Config
	events atomic.Bool
	last   map[types.UID]record
	// broken is notified when the stream of events breaks: what it would have shown is looked for at once.
	broken notify.Signal
	// relisted is the time of the last good relist, in nanoseconds.
	relisted atomic.Int64
}

// New returns a Generator that begins with Run.
func New(cfg Config) *Generator {
	if cfg.Period <= 0 {
		cfg.Period = time.Second
	}
	if cfg.SlowPeriod <= 0 {
		cfg.SlowPeriod = 10 * time.Second
	}
	return &Generator{cfg: cfg, broken: notify.New()}
}

// threshold is how long ago the last good relist may be.
const threshold = 3 * time.Minute

// Healthy is nil if a relist succeeded within the last 3 minutes.
func (g *Generator) Healthy(now time.Time) error {
	last := g.relisted.Load()
	if last == 0 {
		return errors.New("pleg has yet to be successful")
	}
	if ago := now.Sub(time.Unix(0, last)); ago > threshold {
		return fmt.Errorf("pleg was last seen active %v ago; threshold is %v", ago, threshold)
	}
	return nil
}

// Handler takes what a Generator finds. Its methods must not block for long.
type Handler interface {
	// Changed is called with each pod that changed.
	Changed(uid types.UID)
	// Listed is called with every successful list.
	Listed(pods []*runtime.PodStatus)
}

// Run tells h what happens in the runtime until ctx ends.
func (g *Generator) Run(ctx context.Context, h Handler) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.follow(ctx, h.Changed)
	}()
	defer func() { <-done }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-g.broken:
		}
		g.relist(ctx, h)
		if g.events.Load() {
			timer.Reset(g.cfg.SlowPeriod)
		} else {
			timer.Reset(g.cfg.Period)
		}
	}
}

func (g *Generator) relist(ctx context.Context, h Handler) {
	begun := time.Now()
	pods, err := g.cfg.Runtime.Pods(ctx)
	if g.cfg.Observe != nil {
		g.cfg.Observe(begun, time.Since(begun), pods, err)
	}
	if err != nil {
		if ctx.Err() == nil {
			g.cfg.Log.Warn("relist of the container runtime failed", "err", err)
		}
		return
	}
	g.relisted.Store(time.Now().UnixNano())
	now := records(pods)
	for _, uid := range diff(g.last, now) {
		h.Changed(uid)
	}
	g.last = now
	h.Listed(pods)
}

// follow reads the runtime's events as long as it has them.
func (g *Generator) follow(ctx context.Context, changed func(types.UID)) {
	for ctx.Err() == nil {
		err := g.cfg.Runtime.Events(ctx, func() { g.events.Store(true) }, changed)
		g.events.Store(false)
		if ctx.Err() != nil || errors.Is(err, g.cfg.Unsupported) {
			return
		}
		g.cfg.Log.Warn("container events broke off, relisting until they come back", "err", err)
		g.broken.Notify()
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
	}
}
