package apiserver

import (
	"context"
	"time"
)

// lifeKey is where the context of a request, while a server runs, has the server's life.
type lifeKey struct{}

// life tells when the server begins to stop, with which streams end, and when it cuts off the requests that are still
// under way.
type life struct{ stopping, cutOff <-chan struct{} }

// lifeOf is the life of the server that serves a request; without one neither ever comes.
func lifeOf(ctx context.Context) life {
	l, _ := ctx.Value(lifeKey{}).(life)
	return l
}

// whole returns the context of a request that is no stream: it ends with its time, with its client, and when the server
// cuts it off, but not when the server begins to stop. What is under way then, mostly a write, would else be done and
// answered as if it were not.
func whole(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	server := lifeOf(ctx)
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
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
