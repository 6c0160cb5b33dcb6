package client

import (
	"context"
	"errors"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/cluster/plan"
)

// Leases reads and writes leases by the first of several API servers that can do it, so one of them may be away. A
// server that breaks off may have written: then the next one says that there is a conflict, or that the lease exists.
type Leases struct {
	servers []leases
}

// LeasesOfAny returns access to leases by the API servers with those URLs, with this machine's identity in the cluster.
func LeasesOfAny(c plan.Config, urls []string) (Leases, error) {
	var l Leases
	for _, url := range urls {
		server, err := leasesAt(c, url)
		if err != nil {
			return l, err
		}
		l.servers = append(l.servers, server)
	}
	return l, nil
}

// Get reads a lease.
func (l Leases) Get(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	return l.ask(ctx, func(ctx context.Context, server leases) (*coordinationv1.Lease, error) {
		return server.Get(ctx, namespace, name)
	})
}

// Create makes a lease.
func (l Leases) Create(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return l.ask(ctx, func(ctx context.Context, server leases) (*coordinationv1.Lease, error) {
		return server.Create(ctx, lease)
	})
}

// Update replaces a lease if its resourceVersion is still the newest.
func (l Leases) Update(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return l.ask(ctx, func(ctx context.Context, server leases) (*coordinationv1.Lease, error) {
		return server.Update(ctx, lease)
	})
}

// ask asks one server after the other until one decides, or ctx ends. Each has leasesTimeout.
func (l Leases) ask(ctx context.Context, do func(context.Context, leases) (*coordinationv1.Lease, error)) (
	*coordinationv1.Lease, error) {
	var undecided []error
	for _, server := range l.servers {
		bounded, cancel := context.WithTimeout(ctx, leasesTimeout)
		lease, err := do(bounded, server)
		cancel()
		if isDecided(err) {
			return lease, err
		}
		undecided = append(undecided, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(undecided...)
}

// isDecided reports whether a server has done what it was asked for, or has refused it. One that cannot reach its etcd
// answers with a 5xx.
func isDecided(err error) bool {
	var status apierrors.APIStatus
	return err == nil || errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError
}
