package node

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"
)

// watchSelf follows the Node in the API until ctx is done.
func (n *Node) watchSelf(ctx context.Context) {
	only := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector = "metadata.name=" + n.cfg.Name
		return o
	}
	nodes := n.cfg.Client.CoreV1().Nodes()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return nodes.List(ctx, only(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return nodes.Watch(ctx, only(o))
		},
	}
	saw := func(obj any) {
		if node, ok := obj.(*corev1.Node); ok && node.Name == n.cfg.Name {
			n.seen(ctx, node)
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: cache.ToListWatcherWithWatchListSemantics(lw, n.cfg.Client), ObjectType: &corev1.Node{},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: saw, UpdateFunc: func(_, obj any) { saw(obj) }}})
	informer.RunWithContext(ctx)
}

// seen takes note of a newer Node and writes the network list when its podCIDRs are new.
func (n *Node) seen(ctx context.Context, node *corev1.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old := n.object.Load(); old != nil && older(node, old) {
		return
	}
	n.object.Store(node)
	cidrs := node.Spec.PodCIDRs
	if len(cidrs) == 0 && node.Spec.PodCIDR != "" {
		cidrs = []string{node.Spec.PodCIDR}
	}
	if n.cfg.Network == nil || len(cidrs) == 0 {
		return
	}
	wrote, err := n.cfg.Network.Write(ctx, cidrs)
	if err != nil {
		n.cfg.Log.Error("network list not written", "podCIDRs", cidrs, "err", err)
		return
	}
	if wrote {
		n.cfg.Log.Info("wrote the node's network list", "podCIDRs", cidrs)
	}
	if !n.network.Swap(true) {
		n.Poke()
	}
}

// older compares resource versions, which are numbers of one sequence for one object; a Node made anew has another UID.
func older(a, b *corev1.Node) bool {
	if a.UID != b.UID {
		return false
	}
	x, y := a.ResourceVersion, b.ResourceVersion
	return len(x) < len(y) || len(x) == len(y) && x < y
}

// keepLease renews the node's lease until ctx is done.
func (n *Node) keepLease(ctx context.Context) {
	own := func(l *coordinationv1.Lease) error {
		if node := n.object.Load(); node != nil && len(l.OwnerReferences) == 0 {
			l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
		}
		return nil
	}
	seconds := int32(n.cfg.LeaseDuration / time.Second)
	failed := func() { n.cfg.Log.Warn("node lease could not be renewed repeatedly", "node", n.cfg.Name) }
	lease.NewController(clock.RealClock{}, n.cfg.Client, n.cfg.Name, seconds, failed, n.cfg.LeaseDuration/4, n.cfg.Name, corev1.NamespaceNodeLease, own).Run(ctx)
}
