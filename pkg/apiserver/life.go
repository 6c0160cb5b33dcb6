package apiserver

import (
	"context"
	"time"
)

// lifeKey is the key of the server's life in the context of a request.
type lifeKey struct{}

// life has the two steps of the server's end. stopping is closed when the server begins to stop: streams end then.
// cutOff is closed when it aborts the requests that are still under way.
type life struct{ stopping, cutOff <-chan struct{} }

// lifeOf returns the life of the server that serves a request. Without one both channels are nil, and block for ever.
func lifeOf(ctx context.Context) life {
	l, _ := ctx.Value(lifeKey{}).(life)
	return l
}

// whole returns the context of a request that is not a stream. It ends with its timeout, with its client, and when the
// server cuts requests off. It does not end when the server begins to stop: a write under way might be stored and yet
// be answered as if it were not.
func whole(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	server := lifeOf(ctx)
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	// ctx ends for either of two reasons, and only the server's channels tell which. A client that leaves during the
	// shutdown is not noticed, which costs at most the timeout.
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-server.stopping:
			select {
			case <-server.cutOff:
			case <-out.Done():
			}
		default:
		}
		cancel()
	})
	return out, func() {
		stop()
		cancel()
	}
}
