package client

import (
	"context"
	"errors"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/coordination"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

const (
	// leasesTimeout bounds one request for the leases: an API server that has just been thawed may be slow.
	leasesTimeout = 10 * time.Second
	// freshLease is the age up to which a lease needs no renewal: half of the time after which the controller manager
	// marks a node as unreachable (--node-monitor-grace-period).
	freshLease = 20 * time.Second
)

// WaitLeases waits until the API server knows a fresh lease of each node that runs. Kubelets and this machine have the
// same clock, so ages can be compared. Resume calls it while the controller managers are still held: a pause makes
// every lease old, and they would mark all nodes as unreachable.
func WaitLeases(ctx context.Context, c plan.Config) error {
	return pollLeases(ctx, c, func(leases []*coordinationv1.Lease) bool { return allFresh(c, leases, time.Now()) })
}

// WaitRenewal waits until a node has renewed its lease since then, as its kubelet does when it starts.
func WaitRenewal(ctx context.Context, c plan.Config, node string, since time.Time) error {
	return pollLeases(ctx, c, func(leases []*coordinationv1.Lease) bool {
		return slices.ContainsFunc(leases, func(l *coordinationv1.Lease) bool {
			return l.Name == node && l.Spec.RenewTime != nil && l.Spec.RenewTime.After(since)
		})
	})
}

// pollLeases asks for the leases of all nodes until they are as wanted.
func pollLeases(ctx context.Context, c plan.Config, wanted func([]*coordinationv1.Lease) bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Layout().Kubeconfig(plan.Administrator))
	if err != nil {
		return err
	}
	s, err := apiclient.NewScheme(
		apiclient.Only(coordinationv1.SchemeGroupVersion, &coordinationv1.Lease{}, &coordinationv1.LeaseList{}))
	if err != nil {
		return err
	}
	api, err := apiclient.New(config, s)
	if err != nil {
		return err
	}
	var last error
	err = host.Poll(ctx, 50*time.Millisecond, func() (bool, error) {
		ask, cancel := context.WithTimeout(ctx, leasesTimeout)
		defer cancel()
		leases, err := coordination.Leases(api).List(ask, "kube-node-lease", metav1.ListOptions{})
		last = err // the API server may need a moment after a pause: only the end of ctx is an error
		return err == nil && wanted(leases), nil
	})
	return errors.Join(err, last)
}

// allFresh reports whether each of the cluster's nodes that has a lease has a fresh one. A node without a lease has not
// run yet. Leases of joined nodes do not count: the configuration does not have these nodes.
func allFresh(c plan.Config, leases []*coordinationv1.Lease, now time.Time) bool {
	for _, l := range leases {
		if c.HasNode(l.Name) && (l.Spec.RenewTime == nil || now.Sub(l.Spec.RenewTime.Time) > freshLease) {
			return false
		}
	}
	return true
}
