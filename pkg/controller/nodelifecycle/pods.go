package nodelifecycle

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
)

// settle marks the pods of a node unready if we marked the node Unknown, once: a kubelet that is heard again reports
// its pods itself, and one that reports its own node as not ready never stopped. Marking them a second time would
// fight with it.
//
// owed is in memory. After a restart podPlaced does the same for every pod, because the cache reports all of them as
// added.
func (c *Controller) settle(ctx context.Context, n *corev1.Node) error {
	if !c.isOwed(n.Name) {
		return nil
	}
	if !nodeReady(n) {
		var errs []error
		for _, p := range c.byNode.On(n.Name) {
			errs = append(errs, c.markUnready(ctx, p))
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	c.setOwed(n.Name, false)
	return nil
}

// podPlaced marks a pod unready that was bound to a node which is not ready. It also sees every pod when the controller
// starts, so that pods which an earlier life left ready are marked.
func (c *Controller) podPlaced(ctx context.Context, key controller.Key) (controller.Result, error) {
	p, ok := c.pods.Get(key)
	if !ok {
		return controller.Result{}, nil
	}
	n, ok := c.nodes.Get(controller.Key{Name: p.Spec.NodeName})
	if !ok || controller.NodeCondition(n, corev1.NodeReady) == nil || nodeReady(n) {
		return controller.Result{}, nil
	}
	return controller.Result{}, c.markUnready(ctx, p)
}

// markUnready sets the Ready condition of a pod to False if it is True.
//
// The write carries the resourceVersion: a status that the kubelet wrote since is a conflict, and wins.
func (c *Controller) markUnready(ctx context.Context, p *corev1.Pod) error {
	if !controller.PodReady(p) {
		return nil
	}
	p = p.DeepCopy()
	r := controller.PodCondition(p, corev1.PodReady)
	r.Status, r.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(c.Now())
	if _, err := c.writePods.UpdateStatus(ctx, p); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("marking pod %s/%s not ready: %w", p.Namespace, p.Name, err)
	}
	c.Events.Event(p, corev1.EventTypeWarning, "NodeNotReady", "Node is not ready")
	return nil
}

// isOwed reports whether pods of the node may still be ready although we marked it Unknown.
func (c *Controller) isOwed(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owed[node]
}

// setOwed records whether pods of the node may still be ready.
func (c *Controller) setOwed(node string, owed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owed {
		c.owed[node] = true
		return
	}
	delete(c.owed, node)
}
