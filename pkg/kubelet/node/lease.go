package node

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Leases reads and writes the node's lease.
type Leases interface {
	Lease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error)
	CreateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error)
	UpdateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error)
}

// leaseRetry is how soon a failed renewal is tried again.
const leaseRetry = time.Second

// keepLease renews the node's lease after each quarter of its length until ctx is done.
func (n *Node) keepLease(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var held *coordinationv1.Lease
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		// A try takes no longer than the time to the next one: a server that hangs is asked again while the lease still
		// holds.
		try, cancel := context.WithTimeout(ctx, n.cfg.LeaseDuration/4)
		next, err := n.renewLease(try, held)
		cancel()
		held = next
		wait := n.cfg.LeaseDuration / 4
		if err != nil {
			if ctx.Err() == nil {
				n.cfg.Log.Warn("node lease not renewed", "node", n.cfg.Name, "err", err)
			}
			wait = leaseRetry
		}
		timer.Reset(wait)
	}
}

// renewLease writes the lease's renew time. held is the lease as last written, nil if unknown. After an error, which
// may be a conflict, the lease is read again.
func (n *Node) renewLease(ctx context.Context, held *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if held == nil {
		got, err := n.cfg.Client.Lease(ctx, corev1.NamespaceNodeLease, n.cfg.Name)
		if apierrors.IsNotFound(err) {
			got, err = n.cfg.Client.CreateLease(ctx,
				n.renewed(&coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Name: n.cfg.Name, Namespace: corev1.NamespaceNodeLease}}))
			if err != nil {
				return nil, fmt.Errorf("create the node's lease: %w", err)
			}
			return got, nil
		}
		if err != nil {
			return nil, fmt.Errorf("get the node's lease: %w", err)
		}
		held = got
	}
	got, err := n.cfg.Client.UpdateLease(ctx, n.renewed(held))
	if err != nil {
		return nil, fmt.Errorf("update the node's lease: %w", err)
	}
	return got, nil
}

// renewed returns the lease as held by this node from now on. The Node becomes its owner as soon as it is known, so
// that the lease is deleted with it.
func (n *Node) renewed(l *coordinationv1.Lease) *coordinationv1.Lease {
	l = l.DeepCopy()
	seconds := int32(n.cfg.LeaseDuration / time.Second)
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &n.cfg.Name, &seconds
	l.Spec.RenewTime = &metav1.MicroTime{Time: n.cfg.Now()}
	if node := n.object.Load(); node != nil && len(l.OwnerReferences) == 0 {
		l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	}
	return l
}
