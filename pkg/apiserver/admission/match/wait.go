package match

import (
	"context"
	"errors"
	"time"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/storage/follow"
)

// syncWait is how long a request waits for webhooks and policies to be known, as upstream.
const syncWait = 10 * time.Second

var errNotReady = errors.New("not yet ready to handle request")

// Wait lets a request wait until all is known that followers follow.
func Wait(ctx context.Context, a *admission.Attributes, followers ...*follow.Follower) error {
	for _, f := range followers {
		if f.HasSynced() {
			continue
		}
		timeout := time.NewTimer(syncWait)
		defer timeout.Stop()
		select {
		case <-f.Synced():
		case <-timeout.C:
			return admission.Forbid(a, "%w", errNotReady)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
