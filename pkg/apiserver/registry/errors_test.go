package registry_test

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
)

// An object that the storage does not take for its size is the client's fault (413), and trying again does not help.
func TestTooLargeForTheStorage(t *testing.T) {
	t.Parallel()
	err := registry.StorageError(fmt.Errorf("create: %w", storage.ErrTooLarge))
	if !apierrors.IsRequestEntityTooLargeError(err) || err.Error() != "Request entity too large: etcdserver: request is too large" {
		t.Errorf("got %v", err)
	}
}
