// Package follow keeps a reader inside the API server informed of all objects of a resource: one Put per object that is
// there, then one Put or Delete per change, through errors and restarts of the watch. Authorizers and admission
// plug-ins build their indexes on it.
package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/storage"
)

// Source is the part of storage.Interface that is needed.
type Source interface {
	Watch(ctx context.Context, prefix string, opts storage.WatchOptions) (storage.Watch, error)
}

// Resource says where the objects of one resource are.
type Resource struct {
	Source Source
	// Prefix is the resource's key prefix: "/registry/pods/".
	Prefix string
	// Decode makes an object of a stored value.
	Decode func(value []byte) (runtime.Object, error)
}

// Handler receives the objects of a resource. One goroutine calls its methods, one after the other; it may call Put
// again for an object that did not change. The handler may keep obj.
type Handler interface {
	Put(key string, obj runtime.Object)
	Delete(key string)
}

// Follower follows one resource.
type Follower struct {
	resource Resource
	handler  Handler
	log      *slog.Logger
	once     sync.Once
	synced   chan struct{}
	known    map[string]struct{} // keys the handler was given; used by Run alone
}

// New returns a Follower; Run starts it.
func New(r Resource, h Handler, log *slog.Logger) *Follower {
	return &Follower{resource: r, handler: h, log: log, synced: make(chan struct{}), known: map[string]struct{}{}}
}

// Synced is closed when the handler has been given every object there was when Run started.
func (f *Follower) Synced() <-chan struct{} { return f.synced }

// HasSynced reports whether Synced is closed.
func (f *Follower) HasSynced() bool {
	select {
	case <-f.synced:
		return true
	default:
		return false
	}
}

// Pauses after a watch that failed, doubled from the first to the second.
const (
	minPause = 50 * time.Millisecond
	maxPause = 5 * time.Second
)

// Run follows until ctx ends. A watch that breaks is opened again, with all objects.
func (f *Follower) Run(ctx context.Context) error {
	pause := minPause
	for {
		progress, err := f.watch(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if progress {
			pause = minPause
		}
		if !errors.Is(err, storage.ErrExpired) {
			f.log.Warn("following a resource failed", "prefix", f.resource.Prefix, "err", err, "retry", pause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPause)
	}
}

// watch follows until the first error; progress reports whether it got as far as knowing all objects.
func (f *Follower) watch(ctx context.Context) (progress bool, err error) {
	w, err := f.resource.Source.Watch(ctx, f.resource.Prefix, storage.WatchOptions{Initial: true})
	if err != nil {
		return false, fmt.Errorf("watching %s: %w", f.resource.Prefix, err)
	}
	defer w.Stop()
	seen := map[string]struct{}{} // until the initial events end
	for {
		events, err := w.Next(ctx)
		if err != nil {
			return progress, fmt.Errorf("watching %s: %w", f.resource.Prefix, err)
		}
		for _, e := range events {
			if e.InitialEnd {
				f.forgetUnseen(seen)
				seen, progress = nil, true
				f.once.Do(func() { close(f.synced) })
				continue
			}
			f.apply(e, seen)
		}
	}
}

func (f *Follower) apply(e storage.Event, seen map[string]struct{}) {
	switch e.Type {
	case storage.Added, storage.Modified:
		if seen != nil {
			seen[e.Item.Key] = struct{}{}
		}
		obj, err := f.resource.Decode(e.Item.Value())
		if err != nil {
			f.log.Error("an object cannot be decoded", "key", e.Item.Key, "err", err)
			return
		}
		f.known[e.Item.Key] = struct{}{}
		f.handler.Put(e.Item.Key, obj)
	case storage.Deleted:
		delete(f.known, e.Item.Key)
		f.handler.Delete(e.Item.Key)
	}
}

// forgetUnseen tells the handler of objects that vanished while no watch was open.
func (f *Follower) forgetUnseen(seen map[string]struct{}) {
	for key := range f.known {
		if _, ok := seen[key]; !ok {
			delete(f.known, key)
			f.handler.Delete(key)
		}
	}
}
