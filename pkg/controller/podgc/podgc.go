// Package podgc deletes the pods that no kubelet and no owner will delete: pods of nodes that are gone, pods being
// deleted on nodes with the out-of-service taint, pods that were deleted before they were scheduled, and the oldest
// terminated pods beyond a threshold.
package podgc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/podindex"
)

const (
	// sweep is how often terminated and orphaned pods are looked for.
	sweep = 20 * time.Second
	// quarantine is how long a node may be missing before its pods go: it may be registering again.
	quarantine = 40 * time.Second
)

// Controller has one key: a sweep over all pods.
type Controller struct {
	controller.Deps
	threshold int
	pods      *controller.Informer[*corev1.Pod]
	byNode    podindex.ByNode
	byEnd     controller.Index[*corev1.Pod]
	nodes     *controller.Informer[*corev1.Node]
	writes    *apiclient.Resource[*corev1.Pod]
	live      *apiclient.Resource[*corev1.Node]
	missing   map[string]time.Time // owned by the one worker
	metrics   *metrics
	loop      *controller.Loop[controller.Key]
}

// New returns the controller; at most threshold terminated pods stay, any number if it is 0 or less.
func New(d controller.Deps, threshold int) (*Controller, error) {
	c := &Controller{
		Deps: d, threshold: threshold, missing: map[string]time.Time{},
		pods: controller.InformerFor(d.Informers, core.Pods), nodes: controller.InformerFor(d.Informers, core.Nodes),
		writes: core.Pods(d.Client), live: core.Nodes(d.Client), metrics: newMetrics(d.Metrics),
	}
	c.byNode, c.byEnd = podindex.NewByNode(c.pods), controller.NewIndex(c.pods, "end", endsOf)
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "pod-garbage-collector", Workers: 1, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	now := func() { c.loop.Add(controller.Key{}) }
	return c, errors.Join(
		controller.Watch(c.loop, c.pods, controller.Handlers[*corev1.Pod]{Update: func(_, p *corev1.Pod) {
			if p.DeletionTimestamp != nil && p.Spec.NodeName == "" {
				now()
			}
		}}),
		controller.Watch(c.loop, c.nodes, controller.Handlers[*corev1.Node]{Delete: func(*corev1.Node) { now() }}),
	)
}

// Values of byEnd. Most pods have none, so that the index is small.
const (
	// endTerminated has the pods whose phase is Succeeded or Failed.
	endTerminated = "terminated"
	// endUnscheduled has the pods that are being deleted and were never bound to a node.
	endUnscheduled = "leaving unscheduled"
)

func endsOf(p *corev1.Pod) []string {
	var at []string
	if controller.PodTerminal(p) {
		at = append(at, endTerminated)
	}
	if p.DeletionTimestamp != nil && p.Spec.NodeName == "" {
		at = append(at, endUnscheduled)
	}
	return at
}

// Run sweeps until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	c.loop.Add(controller.Key{})
	return c.loop.Run(ctx)
}

// Reconcile sweeps once. It looks at all nodes, but only at those pods that may have to go: there are many more of the
// others.
func (c *Controller) Reconcile(ctx context.Context, _ controller.Key) (controller.Result, error) {
	var errs []error
	if c.threshold > 0 {
		for _, p := range surplus(c.byEnd.At(endTerminated), c.threshold) {
			errs = append(errs, c.remove(ctx, p, terminated, ""))
		}
	}
	gone, err := c.goneNodes(ctx, c.byNode.Nodes())
	errs = append(errs, err)
	for _, node := range gone {
		for _, p := range c.byNode.On(node) {
			errs = append(errs, c.remove(ctx, p, orphaned, "PodGC: node no longer exists"))
		}
	}
	for _, n := range c.nodes.List() {
		if !outOfService(n) {
			continue
		}
		for _, p := range c.byNode.On(n.Name) {
			if p.DeletionTimestamp != nil {
				errs = append(errs, c.remove(ctx, p, leftOutOfService, ""))
			}
		}
	}
	for _, p := range c.byEnd.At(endUnscheduled) {
		errs = append(errs, c.remove(ctx, p, unscheduled, ""))
	}
	return controller.Result{RequeueAfter: sweep}, errors.Join(errs...)
}

// outOfService reports whether a node is not ready and has the taint by which somebody promises that it is shut down:
// nothing on it runs any more, so its pods need not be waited for
// (https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown).
func outOfService(n *corev1.Node) bool {
	if !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }) {
		return false
	}
	r := controller.NodeCondition(n, corev1.NodeReady)
	return r == nil || r.Status != corev1.ConditionTrue
}

// surplus returns the oldest terminated pods beyond the threshold.
func surplus(terminated []*corev1.Pod, threshold int) []*corev1.Pod {
	n := len(terminated) - threshold
	if n <= 0 {
		return nil
	}
	slices.SortFunc(terminated, func(a, b *corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return terminated[:n]
}

// goneNodes returns those of the nodes that pods name which have been missing for the quarantine, as the server
// confirms.
func (c *Controller) goneNodes(ctx context.Context, named []string) ([]string, error) {
	now := c.Now()
	missing := map[string]time.Time{}
	var gone []string
	var errs []error
	for _, name := range named {
		if _, ok := c.nodes.Get(controller.Key{Name: name}); ok {
			continue
		}
		since, known := c.missing[name]
		if !known {
			since = now
		}
		missing[name] = since
		if now.Sub(since) < quarantine {
			continue
		}
		if _, err := c.live.Get(ctx, "", name); apierrors.IsNotFound(err) {
			gone = append(gone, name)
		} else if err != nil {
			errs = append(errs, err)
		}
	}
	c.missing = missing
	return gone, errors.Join(errs...)
}

// remove deletes a pod at once. One that is not at its end is marked Failed first, so that its owner counts right; a
// message goes into its condition DisruptionTarget.
func (c *Controller) remove(ctx context.Context, p *corev1.Pod, why, message string) error {
	err := c.end(ctx, p, message)
	c.metrics.removed(p.Namespace, why, err)
	return err
}

func (c *Controller) end(ctx context.Context, p *corev1.Pod, message string) error {
	if !controller.PodTerminal(p) {
		if err := c.fail(ctx, p, message); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("marking pod %s/%s failed: %w", p.Namespace, p.Name, err)
		}
	}
	zero := int64(0)
	err := c.writes.DeleteWith(ctx, p.Namespace, p.Name,
		metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting pod %s/%s: %w", p.Namespace, p.Name, err)
}

func (c *Controller) fail(ctx context.Context, p *corev1.Pod, message string) error {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"phase":"Failed"}}`, p.UID)
	if message != "" {
		patch = fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"phase":"Failed","conditions":[{"type":"DisruptionTarget","status":"True","reason":"DeletionByPodGC","message":%q,"lastTransitionTime":%q}]}}`,
			p.UID, message, c.Now().UTC().Format(time.RFC3339))
	}
	_, err := c.writes.Patch(ctx, p.Namespace, p.Name, types.StrategicMergePatchType, []byte(patch), "status")
	return err
}
