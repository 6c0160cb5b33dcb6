package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
)

// An object that the storage does not take for its size is the client's fault (413), and trying again does not help.
func TestTooLargeForTheStorage(t *testing.T) {
	t.Parallel()
	err := registry.StorageError(fmt.Errorf("create: %w", storage.ErrTooLarge))
	if !apierrors.IsRequestEntityTooLargeError(err) ||
		err.Error() != "Request entity too large: etcdserver: request is too large" {
		t.Errorf("got %v", err)
	}
}

// TestFaultsNameNoKeys: what goes wrong in the storage is told without its keys, also where it is quoted; the log has
// them.
func TestFaultsNameNoKeys(t *testing.T) {
	t.Parallel()
	full := errors.New("etcdserver: mvcc: database space exceeded")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"one key": {storage.At("etcd: create", "/registry/secrets/ns/s", full),
			"Internal error occurred: etcdserver: mvcc: database space exceeded"},
		"a key and a prefix": {fmt.Errorf("read: %w",
			storage.At("watchcache: load", "/registry/secrets/",
				storage.At("etcd: list", "/registry/secrets/ns/", full))),
			"Internal error occurred: etcdserver: mvcc: database space exceeded"},
		"none": {errors.New("decode stored Secret: EOF"),
			"Internal error occurred: decode stored Secret: EOF"},
		"late": {storage.At("etcd: get", "/registry/secrets/ns/s", context.DeadlineExceeded),
			"Timeout: request did not complete within requested timeout - context deadline exceeded"},
		"expired": {storage.At("watch", "/registry/secrets/", storage.ErrExpired),
			"The resourceVersion for the provided list is too old."},
	} {
		err := registry.StorageError(c.err)
		if err.Error() != c.want || fmt.Errorf("admission: %w", err).Error() != "admission: "+c.want {
			t.Errorf("%s: %v", name, err)
		}
		if fault := (*registry.Fault)(nil); errors.As(err, &fault) && fault.Err.Error() != c.err.Error() {
			t.Errorf("%s: the log has %v", name, fault.Err)
		}
		if strings.HasPrefix(c.want, "Internal") != apierrors.IsInternalError(err) {
			t.Errorf("%s: reason %s", name, apierrors.ReasonForError(err))
		}
	}
}

// A storage that does not answer is told as a timeout, which clients may try again.
func TestStorageThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	err := registry.StorageError(storage.At("etcd: get", "/registry/configmaps/ns/a", storage.ErrTimeout))
	if !apierrors.IsTimeout(err) || err.Error() != "Timeout: request did not complete within the allotted timeout" {
		t.Errorf("got %v", err)
	}
}
