package client

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestIsDecided: another server is asked if one does not answer, or cannot reach its etcd, and not if it refuses.
func TestIsDecided(t *testing.T) {
	t.Parallel()
	leases := schema.GroupResource{Resource: "leases"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"done":           {nil, true},
		"no connection":  {errors.New("connection refused"), false},
		"no etcd":        {apierrors.NewInternalError(errors.New("etcdserver: no leader")), false},
		"not ready":      {apierrors.NewServiceUnavailable("starting"), false},
		"etcd timed out": {apierrors.NewTimeoutError("etcd", 1), false},
		"conflict":       {apierrors.NewConflict(leases, "l", errors.New("changed")), true},
		"not found":      {apierrors.NewNotFound(leases, "l"), true},
		"forbidden":      {apierrors.NewForbidden(leases, "l", errors.New("no role")), true},
	} {
		if got := isDecided(c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
