package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"
)

// watchSelf follows the Node in the API until ctx is done.
func (n *Node) watchSelf(ctx context.Context) {
	lw := n.cfg.Client.Objects("nodes", "", "metadata.name="+n.cfg.Name)
	saw := func(obj any) {
		if node, ok := obj.(*corev1.Node); ok && node.Name == n.cfg.Name {
			n.seen(node)
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: lw, ObjectType: &corev1.Node{},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: saw, UpdateFunc: func(before, obj any) {
			if was, now := before.(*corev1.Node), obj.(*corev1.Node); restored(was, now) {
				n.forget(now)
			}
			saw(obj)
		}}})
	informer.RunWithContext(ctx)
}

// restored reports whether now, which the watch sent after before, belongs to an earlier history of the Node: etcd was
// restored from a snapshot.
func restored(before, now *corev1.Node) bool {
	if before.UID == now.UID && before.ResourceVersion == now.ResourceVersion {
		return !equality.Semantic.DeepEqual(before.Status, now.Status)
	}
	return older(now, before)
}

// forget makes a restored Node the known one, although it is older, and lets the lost status be written again.
func (n *Node) forget(restored *corev1.Node) {
	n.mu.Lock()
	n.object.Store(restored)
	n.mu.Unlock()
	n.cfg.Log.Warn("the Node went back to an older state: the API server's storage was restored", "node", n.cfg.Name,
		"resourceVersion", restored.ResourceVersion)
	n.cfg.Changed.Notify()
}

// seen records a newer Node; older ones are ignored, because the watch and our own writes race. Once the Node has
// podCIDRs, the runtime's network follows at once, and with it the node becomes Ready: so the status is computed then.
func (n *Node) seen(node *corev1.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.object.Load()
	if old != nil && older(node, old) {
		return
	}
	n.object.Store(node)
	if n.news != nil {
		close(n.news)
		n.news = nil
	}
	if n.cfg.Observed != nil {
		n.cfg.Observed()
	}
	if node.Spec.PodCIDR != "" && (old == nil || old.Spec.PodCIDR == "") {
		n.cfg.Changed.Notify()
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
