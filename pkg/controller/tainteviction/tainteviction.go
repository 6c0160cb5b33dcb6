// Package tainteviction deletes pods from nodes with NoExecute taints that the pods do not tolerate, or no longer.
package tainteviction

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/podindex"
)

// Controller reconciles pods.
type Controller struct {
	controller.Deps
	pods   *controller.Informer[*corev1.Pod]
	byNode podindex.ByNode
	nodes  *controller.Informer[*corev1.Node]
	writes *apiclient.Resource[*corev1.Pod]
	loop   *controller.Loop[controller.Key]
	seen   *sightings
	// deleted counts the pods that were evicted, late the seconds by which each was.
	deleted prometheus.Counter
	late    prometheus.Histogram
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	const subsystem = "taint_eviction_controller"
	c := &Controller{
		Deps: d, pods: controller.InformerFor(d.Informers, core.Pods),
		nodes:  controller.InformerFor(d.Informers, core.Nodes),
		writes: core.Pods(d.Client), seen: newSightings(),
		deleted: prometheus.NewCounter(
			prometheus.CounterOpts{Subsystem: subsystem, Name: "pod_deletions_total",
				Help: "Pods that were deleted because of a taint of their node."}),
		late: prometheus.NewHistogram(
			prometheus.HistogramOpts{Subsystem: subsystem, Name: "pod_deletion_duration_seconds",
				Help:    "Seconds from the time when a taint should evict a pod to the pod's deletion.",
				Buckets: []float64{0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240}}),
	}
	c.byNode = podindex.NewByNode(c.pods)
	d.Metrics.Register(c.deleted)
	d.Metrics.Register(c.late)
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "noexec_taint_pod", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.Reconcile)
	return c, errors.Join(
		controller.Watch(c.loop, c.pods, controller.Handlers[*corev1.Pod]{
			Add: func(p *corev1.Pod) { c.podChanged(p) },
			Update: func(old, p *corev1.Pod) {
				if old.Spec.NodeName != p.Spec.NodeName ||
					!equality.Semantic.DeepEqual(old.Spec.Tolerations, p.Spec.Tolerations) {
					c.podChanged(p)
				}
			},
		}),
		controller.Watch(c.loop, c.nodes, controller.Handlers[*corev1.Node]{
			Add:    func(n *corev1.Node) { c.nodeChanged(nil, n) },
			Update: func(old, n *corev1.Node) { c.nodeChanged(noExecute(old), n) },
			Delete: func(n *corev1.Node) { c.seen.forget(n.Name) },
		}),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

func noExecute(n *corev1.Node) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute {
			out = append(out, t)
		}
	}
	return out
}

func (c *Controller) podChanged(p *corev1.Pod) {
	if n, ok := c.nodes.Get(controller.Key{Name: p.Spec.NodeName}); ok && len(noExecute(n)) > 0 {
		c.loop.Add(controller.KeyOf(p))
	}
}

// nodeChanged notes since when the taints are there before any pod is looked at for them.
func (c *Controller) nodeChanged(before []corev1.Taint, n *corev1.Node) {
	after := noExecute(n)
	c.seen.note(n.Name, after, c.Now())
	if len(after) == 0 || equality.Semantic.DeepEqual(before, after) {
		return
	}
	for _, p := range c.byNode.On(n.Name) {
		c.loop.Add(controller.KeyOf(p))
	}
}

// Reconcile evicts the pod, or comes back when its toleration runs out. A taint that goes away in time saves it: the
// state is read again then.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	p, ok := c.pods.Get(key)
	if !ok || p.DeletionTimestamp != nil || p.Spec.NodeName == "" || controller.PodTerminal(p) {
		return controller.Result{}, nil
	}
	n, ok := c.nodes.Get(controller.Key{Name: p.Spec.NodeName})
	if !ok {
		return controller.Result{}, nil
	}
	now := c.Now()
	taints := c.seen.note(n.Name, noExecute(n), now)
	wait, evict := decide(taints, p.Spec.Tolerations, arrival(p), now)
	if !evict {
		return controller.Result{RequeueAfter: wait}, nil
	}
	c.Events.Eventf(p, corev1.EventTypeNormal, "TaintManagerEviction", "Marking for deletion Pod %s", key)
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"DeletionByTaintManager","message":"Taint manager: deleting due to NoExecute taint","lastTransitionTime":%q}]}}`,
		p.UID, c.Now().UTC().Format(time.RFC3339))
	if _, err := c.writes.Patch(ctx, p.Namespace, p.Name, types.StrategicMergePatchType, []byte(patch),
		"status"); err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, fmt.Errorf("marking pod %s for eviction: %w", key, err)
	}
	if err := c.writes.Delete(ctx, p.Namespace, p.Name, p.UID); err != nil && !apierrors.IsNotFound(err) &&
		!apierrors.IsConflict(err) {
		return controller.Result{}, fmt.Errorf("evicting pod %s: %w", key, err)
	}
	c.deleted.Inc()
	due, _ := deadline(taints, p.Spec.Tolerations, arrival(p), now)
	c.late.Observe(c.Now().Sub(due).Seconds())
	return controller.Result{}, nil
}
