package etcd

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bonsai/pkg/apiserver/storage"
)

// TestTimeouts: the end of the store's own limit is no end of the caller's context.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	limit := status.Error(codes.DeadlineExceeded, "context deadline exceeded")
	if err := translate(t.Context(), "get", "/a", limit); !errors.Is(err, storage.ErrTimeout) {
		t.Errorf("the store's limit: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := translate(ended, "get", "/a", limit); errors.Is(err, storage.ErrTimeout) ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left: %v", err)
	}
	if err := translate(t.Context(), "get", "/a",
		status.Error(codes.Unavailable, "gone")); errors.Is(err, storage.ErrTimeout) {
		t.Errorf("another fault: %v", err)
	}
}
