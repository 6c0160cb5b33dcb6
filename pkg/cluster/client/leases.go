package client

import (
	"context"
	"errors"
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
	// nodeLeases is the namespace of the nodes' leases.
	nodeLeases = "kube-node-lease"
)

// WaitLeases waits until the API server knows a fresh lease of each node that runs. Kubelets and this machine have the
// same clock, so ages can be compared. Resume calls it while the controller managers are still held: a pause makes
// every lease old, and they would mark all nodes as unreachable.
func WaitLeases(ctx context.Context, c plan.Config) error {
	return pollLeases(ctx, c, func(ctx context.Context, leases leases) (bool, error) {
		all, err := leases.List(ctx, nodeLeases, metav1.ListOptions{})
		return allFresh(c, all, time.Now()), err
	})
}

// WaitRenewal waits until a node of this machine has renewed its lease since then, as its kubelet does when it starts.
func WaitRenewal(ctx context.Context, c plan.Config, node string, since time.Time) error {
	return pollLeases(ctx, c, func(ctx context.Context, leases leases) (bool, error) {
		l, err := leases.Get(ctx, nodeLeases, node) // a kubelet may read no other node's
		return err == nil && l.Spec.RenewTime != nil && l.Spec.RenewTime.After(since), err
	})
}

// pollLeases asks until the answer is yes. Only the end of ctx is an error: the API server may need a moment after a
// pause.
func pollLeases(ctx context.Context, c plan.Config, question func(context.Context, leases) (bool, error)) error {
	leases, err := leasesAt(c, "")
	if err != nil {
		return err
	}
	var last error
	err = host.Poll(ctx, 50*time.Millisecond, func() (bool, error) {
		ask, cancel := context.WithTimeout(ctx, leasesTimeout)
		defer cancel()
		var yes bool
		yes, last = question(ask, leases)
		return last == nil && yes, nil
	})
	return errors.Join(err, last)
}

// leases gives access to leases.
type leases = *apiclient.Resource[*coordinationv1.Lease]

// leasesAt returns access to leases with this machine's identity in the cluster (plan.Config.Identity), by the API
// server with that URL, or by that of the kubeconfig if it is "".
func leasesAt(c plan.Config, server string) (leases, error) {
	config, err := clientcmd.BuildConfigFromFlags(server, c.Layout().Kubeconfig(c.Identity()))
	if err != nil {
		return nil, err
	}
	s, err := apiclient.NewScheme(
		apiclient.Only(coordinationv1.SchemeGroupVersion, &coordinationv1.Lease{}, &coordinationv1.LeaseList{}))
	if err != nil {
		return nil, err
	}
	api, err := apiclient.New(config, s)
	if err != nil {
		return nil, err
	}
	return coordination.Leases(api), nil
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
