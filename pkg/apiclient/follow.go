package apiclient

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Sink takes the objects of a resource, from one goroutine: all of them, then each change, and all of them again
// whenever the changes in between are not known. What it does not keep is garbage at once.
type Sink[T any] interface {
	// Replace takes everything there is. What the sink knows beside it is gone.
	Replace(all []T)
	// Set takes an object that is new or changed.
	Set(T)
	// Delete takes the last state of an object that is gone.
	Delete(T)
}

// Follow lists and watches, and passes the objects to sink, until ctx ends. name is for log lines.
//
// client-go's reflector does the work. It resumes a watch that ended at the version that it has reached; bookmarks
// advance that version while nothing changes. After 410 (the server has forgotten the version) it lists again. It
// retries failures after 0.8 s, doubled up to 30 s, with a random factor of up to 2, so that a server that comes back
// does not get the requests of all clients at once.
func Follow[T any](ctx context.Context, lw cache.ListerWatcher, name string, sink Sink[T], log *slog.Logger) {
	logger := logr.FromSlogHandler(log.Handler())
	ctx = klog.NewContext(ctx, logger)
	var item T // which the reflector asks for its type alone
	cache.NewReflectorWithOptions(lw, item, store[T]{sink},
		cache.ReflectorOptions{Name: name, Logger: &logger}).RunWithContext(ctx)
}

// store is a Sink as the reflector sees it, which refuses objects of another type.
type store[T any] struct{ sink Sink[T] }

var _ cache.ReflectorStore = store[any]{}

// Add takes a new object.
func (s store[T]) Add(o any) error { return s.Update(o) }

// Update takes a changed object.
func (s store[T]) Update(o any) error { return typed(o, s.sink.Set) }

// Delete takes an object that is gone.
func (s store[T]) Delete(o any) error { return typed(o, s.sink.Delete) }

// Replace takes a complete list.
func (s store[T]) Replace(all []any, _ string) error {
	out := make([]T, 0, len(all))
	for _, o := range all {
		if err := typed(o, func(t T) { out = append(out, t) }); err != nil {
			return err
		}
	}
	s.sink.Replace(out)
	return nil
}

// Resync has nothing to do: sinks keep what they received.
func (s store[T]) Resync() error { return nil }

func typed[T any](o any, f func(T)) error {
	t, ok := o.(T)
	if !ok {
		return fmt.Errorf("unexpected object %T", o)
	}
	f(t)
	return nil
}
