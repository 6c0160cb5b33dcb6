// Package nodelifecycle watches the nodes' heartbeats. A node whose Lease and status fall silent is marked Unknown; nodes
// get the taints that say what is wrong with them, and the pods of nodes that are not ready lose their readiness.
package nodelifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
)

// leaseNamespace holds the nodes' heartbeats.
const leaseNamespace = "kube-node-lease"

// Controller reconciles nodes.
type Controller struct {
	controller.Deps
	grace  time.Duration
	nodes  *controller.Informer[*corev1.Node]
	leases *controller.Informer[*coordinationv1.Lease]
	pods   *controller.Informer[*corev1.Pod]

	writeNodes *controller.Resource[*corev1.Node]
	writePods  *controller.Resource[*corev1.Pod]
	loop       *controller.Loop[controller.Key]

	mu    sync.Mutex
	beats map[string]beat
}

// beat is the last sign of life of a node: what it looked like, and when we saw that, by our own clock.
type beat struct {
	lease, status metav1.Time
	at            time.Time
}

// New returns the controller; grace is how long a node may be silent.
func New(d controller.Deps, grace time.Duration) (*Controller, error) {
	c := &Controller{
		Deps: d, grace: grace, beats: map[string]beat{},
		nodes:  controller.InformerFor(d.Informers, controller.Nodes),
		leases: controller.FilteredInformerFor(d.Informers, controller.Leases, controller.Filter{Namespace: leaseNamespace}),
		pods:   controller.InformerFor(d.Informers, controller.Pods), writeNodes: controller.Nodes(d.Client), writePods: controller.Pods(d.Client),
	}
	c.loop = controller.NewLoop(controller.LoopConfig{Name: "node-lifecycle", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	return c, errors.Join(
		controller.WatchKeys(c.loop, c.nodes),
		controller.Watch(c.loop, c.leases, controller.All(func(l *coordinationv1.Lease) { c.leaseChanged(l) })),
		controller.Watch(c.loop, c.pods, controller.Handlers[*corev1.Pod]{Update: func(_, p *corev1.Pod) { c.podChanged(p) }}),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// leaseChanged notes a heartbeat; only a node that was given up needs to be looked at for that.
func (c *Controller) leaseChanged(l *coordinationv1.Lease) {
	if l.Spec.RenewTime == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.beats[l.Name]
	renewed := metav1.NewTime(l.Spec.RenewTime.Time)
	if b.lease.Before(&renewed) {
		b.lease, b.at = renewed, c.Now()
		c.beats[l.Name] = b
	}
}

// podChanged looks after a pod that claims to be ready on a node that is not.
func (c *Controller) podChanged(p *corev1.Pod) {
	if p.Spec.NodeName == "" || !controller.PodReady(p) {
		return
	}
	if n, ok := c.nodes.Get(controller.Key{Name: p.Spec.NodeName}); ok && !nodeReady(n) {
		c.loop.Add(controller.KeyOf(n))
	}
}

func nodeReady(n *corev1.Node) bool {
	r := controller.NodeCondition(n, corev1.NodeReady)
	return r != nil && r.Status == corev1.ConditionTrue
}

// lastSeen returns when the node last gave a sign of life.
func (c *Controller) lastSeen(n *corev1.Node, now time.Time) time.Time {
	status := n.CreationTimestamp
	if r := controller.NodeCondition(n, corev1.NodeReady); r != nil {
		status = r.LastHeartbeatTime
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b, known := c.beats[n.Name]
	if !known || b.at.IsZero() || b.status.Before(&status) {
		b.status, b.at = status, now
		c.beats[n.Name] = b
	}
	return b.at
}

// Reconcile brings a node's conditions and taints in line with its heartbeats, and comes back when the next one is overdue.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	cached, ok := c.nodes.Get(key)
	if !ok {
		c.mu.Lock()
		delete(c.beats, key.Name)
		c.mu.Unlock()
		return controller.Result{}, nil
	}
	now := c.Now()
	silentFor := now.Sub(c.lastSeen(cached, now))
	n := cached.DeepCopy()
	if silentFor > c.grace && markUnknown(n, now) {
		c.Log.Info("node is silent", "node", n.Name, "for", silentFor.Round(time.Second))
		updated, err := c.writeNodes.UpdateStatus(ctx, n)
		if err != nil {
			return ignoreGone(fmt.Errorf("marking node %s unknown: %w", n.Name, err))
		}
		if nodeReady(cached) {
			c.Events.Eventf(n, corev1.EventTypeNormal, "NodeNotReady", "Node %s status is now: %s", n.Name, "NodeNotReady")
		}
		n = updated
	}
	if taints := taintsFor(n, now); !equality.Semantic.DeepEqual(n.Spec.Taints, taints) {
		n.Spec.Taints = taints
		updated, err := c.writeNodes.Update(ctx, n)
		if err != nil {
			return ignoreGone(fmt.Errorf("tainting node %s: %w", n.Name, err))
		}
		n = updated
	}
	if r := controller.NodeCondition(n, corev1.NodeReady); r != nil && r.Status != corev1.ConditionTrue {
		if err := c.unreadyPods(ctx, n.Name); err != nil {
			return controller.Result{}, err
		}
	}
	if silentFor > c.grace {
		// The kubelet's next status brings the node back.
		return controller.Result{}, nil
	}
	return controller.Result{RequeueAfter: c.grace - silentFor + 50*time.Millisecond}, nil
}

func ignoreGone(err error) (controller.Result, error) {
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	return controller.Result{}, err
}

// unreadyPods turns the Ready condition of a node's pods to False: what runs there can no longer be relied upon.
func (c *Controller) unreadyPods(ctx context.Context, node string) error {
	var errs []error
	for _, p := range c.pods.List() {
		if p.Spec.NodeName != node || !controller.PodReady(p) {
			continue
		}
		p = p.DeepCopy()
		r := controller.PodCondition(p, corev1.PodReady)
		r.Status, r.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(c.Now())
		if _, err := c.writePods.UpdateStatus(ctx, p); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("marking pod %s/%s not ready: %w", p.Namespace, p.Name, err))
			continue
		}
		c.Events.Event(p, corev1.EventTypeWarning, "NodeNotReady", "Node is not ready")
	}
	return errors.Join(errs...)
}
