package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// watchSelf follows the Node in the API until ctx is done.
func (n *Node) watchSelf(ctx context.Context) {
	lw := n.cfg.Client.Objects("nodes", "", "metadata.name="+n.cfg.Name)
	saw := func(obj any) {
		if node, ok := obj.(*corev1.Node); ok && node.Name == n.cfg.Name {
			n.seen(ctx, node)
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: lw, ObjectType: &corev1.Node{},
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
	if n.cfg.Observed != nil {
		n.cfg.Observed()
	}
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

// older compares resource versions, which are numbers of one sequence for one object; a recreated Node has another UID.
func older(a, b *corev1.Node) bool {
	if a.UID != b.UID {
		return false
	}
	x, y := a.ResourceVersion, b.ResourceVersion
	return len(x) < len(y) || len(x) == len(y) && x < y
}
