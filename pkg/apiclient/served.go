package apiclient

import (
	"context"
	"log/slog"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// How long to wait before asking again for a resource that the server does not serve: at first, and at most. A resource
// appears with another version of the API server or when a program installs it, and no watch can report that.
const (
	firstAbsence = time.Second
	maxAbsence   = time.Minute
)

// followWhileServed is Follow for a resource that the server may not serve, or not always. As long as it does not, sink
// has an empty list, and only a timer runs.
func followWhileServed[T any](ctx context.Context, lw cache.ListerWatcher, name string, sink Sink[T],
	log *slog.Logger) {
	source := cache.ToListerWatcherWithContext(lw)
	absence := newAbsence()
	for ctx.Err() == nil {
		// Asked here and not by the reflector, which would complain in the log each time.
		if _, err := source.ListWithContext(ctx, metav1.ListOptions{Limit: 1}); apierrors.IsNotFound(err) {
			sink.Replace(nil)
			pause(ctx, absence.Step())
			continue
		}
		absence = newAbsence()
		served, gone := context.WithCancel(ctx)
		Follow(served, endsWithResource(source, gone), name, sink, log)
		gone()
		if ctx.Err() == nil {
			// At once: at the start of a cluster the server is asked in vain before it can say no, and somebody waits
			// to be in sync.
			sink.Replace(nil)
			pause(ctx, firstAbsence)
		}
	}
}

func newAbsence() *wait.Backoff {
	return &wait.Backoff{Duration: firstAbsence, Factor: 2, Jitter: 0.1, Cap: maxAbsence, Steps: math.MaxInt32}
}

// endsWithResource calls gone when the server says that there is no such resource. The reflector, which ends then,
// gets an empty list instead of the error, which it would log.
func endsWithResource(source cache.ListerWatcherWithContext, gone func()) cache.ListerWatcher {
	return PlainListWatch{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := source.ListWithContext(ctx, o)
			if apierrors.IsNotFound(err) {
				gone()
				return &metav1.List{}, nil
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := source.WatchWithContext(ctx, o)
			if apierrors.IsNotFound(err) {
				gone()
				return watch.NewProxyWatcher(make(chan watch.Event)), nil
			}
			return w, err
		},
	}}
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
