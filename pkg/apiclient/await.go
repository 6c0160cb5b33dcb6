package apiclient

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// How Await asks: soon and often, because the parts of a control plane start together, and the slowest one decides when
// it is ready. A request to a port without a listener costs about 0.1 ms.
const (
	awaitTimeout = 10 * time.Second
	awaitPause   = 10 * time.Millisecond
)

// Await returns when the API server says that it is ready, after awaitTimeout without that, or when ctx ends.
// Reflectors and elections that begin before try again only after 0.8 s and 2 s and log each try; those that begin
// after awaitTimeout go on with that.
func (c *Client) Await(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	for {
		_, err := c.Document(ctx, "/readyz", "*/*")
		// A server that does not let us ask is up.
		if status := (&apierrors.StatusError{}); err == nil ||
			errors.As(err, &status) && status.ErrStatus.Code < http.StatusInternalServerError {
			return
		}
		select {
		case <-ctx.Done():
			log.Warn("the API server is not ready", "err", err)
			return
		case <-time.After(awaitPause):
		}
	}
}
