// Package tainteviction deletes pods from nodes with NoExecute taints that the pods do not tolerate, or no longer.
package tainteviction

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/controller"
)

// Controller reconciles pods.
type Controller struct {
	controller.Deps
	pods   *controller.Informer[*corev1.Pod]
	nodes  *controller.Informer[*corev1.Node]
	writes *controller.Resource[*corev1.Pod]
	loop   *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{
		Deps: d, pods: controller.InformerFor(d.Informers, controller.Pods), nodes: controller.InformerFor(d.Informers, controller.Nodes),
		writes: controller.Pods(d.Client),
	}
	c.loop = controller.NewLoop(controller.LoopConfig{Name: "taint-eviction", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	return c, errors.Join(
		controller.Watch(c.loop, c.pods, controller.Handlers[*corev1.Pod]{
			Add: func(p *corev1.Pod) { c.podChanged(p) },
			Update: func(old, p *corev1.Pod) {
				if old.Spec.NodeName != p.Spec.NodeName || !equality.Semantic.DeepEqual(old.Spec.Tolerations, p.Spec.Tolerations) {
					c.podChanged(p)
				}
			},
		}),
		controller.Watch(c.loop, c.nodes, controller.Handlers[*corev1.Node]{
			Add:    func(n *corev1.Node) { c.nodeChanged(nil, n) },
			Update: func(old, n *corev1.Node) { c.nodeChanged(noExecute(old), n) },
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

func (c *Controller) nodeChanged(before []corev1.Taint, n *corev1.Node) {
	after := noExecute(n)
	if len(after) == 0 || equality.Semantic.DeepEqual(before, after) {
		return
	}
	for _, p := range c.pods.List() {
		if p.Spec.NodeName == n.Name {
			c.loop.Add(controller.KeyOf(p))
		}
	}
}

// Reconcile evicts the pod, or comes back when its toleration runs out. A taint that goes away in time saves it: the state
// is read anew then.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	p, ok := c.pods.Get(key)
	if !ok || p.DeletionTimestamp != nil || p.Spec.NodeName == "" || controller.PodTerminal(p) {
		return controller.Result{}, nil
	}
	n, ok := c.nodes.Get(controller.Key{Name: p.Spec.NodeName})
	if !ok {
		return controller.Result{}, nil
	}
	wait, evict := decide(noExecute(n), p.Spec.Tolerations, c.Now())
	if !evict {
		return controller.Result{RequeueAfter: wait}, nil
	}
	c.Events.Eventf(p, corev1.EventTypeNormal, "TaintManagerEviction", "Marking for deletion Pod %s", key)
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"DeletionByTaintManager","message":"Taint manager: deleting due to NoExecute taint","lastTransitionTime":%q}]}}`,
		p.UID, c.Now().UTC().Format(time.RFC3339))
	if _, err := c.writes.Patch(ctx, p.Namespace, p.Name, types.StrategicMergePatchType, []byte(patch), "status"); err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, fmt.Errorf("marking pod %s for eviction: %w", key, err)
	}
	if err := c.writes.Delete(ctx, p.Namespace, p.Name, p.UID); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return controller.Result{}, fmt.Errorf("evicting pod %s: %w", key, err)
	}
	return controller.Result{}, nil
}

// decide tells whether a pod with these tolerations has to leave, or how long it may still stay; 0 is for ever. Of several
// tolerations the shortest time counts, from when each taint was added.
func decide(taints []corev1.Taint, tolerations []corev1.Toleration, now time.Time) (wait time.Duration, evict bool) {
	for i := range taints {
		t := &taints[i]
		seconds, tolerated := tolerance(t, tolerations)
		if !tolerated {
			return 0, true
		}
		if seconds == nil {
			continue
		}
		added := now
		if t.TimeAdded != nil {
			added = t.TimeAdded.Time
		}
		left := added.Add(time.Duration(max(*seconds, 0)) * time.Second).Sub(now)
		if left <= 0 {
			return 0, true
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return wait, false
}

// tolerance returns for how many seconds the taint is tolerated (nil: for ever), and whether it is at all.
func tolerance(t *corev1.Taint, tolerations []corev1.Toleration) (seconds *int64, ok bool) {
	for i := range tolerations {
		tol := &tolerations[i]
		if !tolerates(tol, t) {
			continue
		}
		if s := tol.TolerationSeconds; s != nil && (seconds == nil || *s < *seconds) {
			seconds = s
		}
		ok = true
	}
	return seconds, ok
}

// tolerates matches effect, key and value; an empty effect or key with Exists matches any.
func tolerates(tol *corev1.Toleration, t *corev1.Taint) bool {
	if tol.Effect != "" && tol.Effect != t.Effect || tol.Key != "" && tol.Key != t.Key {
		return false
	}
	switch tol.Operator {
	case corev1.TolerationOpExists:
		return true
	case "", corev1.TolerationOpEqual:
		return tol.Key != "" && tol.Value == t.Value
	default:
		return false
	}
}
