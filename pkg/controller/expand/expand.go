// Package expand watches over claims that ask for more than they have. No kind of volume is left that Kubernetes itself
// makes larger: the volume's driver has a resizer of its own for that, for which the controller tells the claim's user
// to wait.
package expand

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"bonsai/api/core/volumebinding"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
)

// Controller reconciles claims.
type Controller struct {
	controller.Deps
	claims  *controller.Informer[*corev1.PersistentVolumeClaim]
	volumes *controller.Informer[*corev1.PersistentVolume]
	loop    *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{Deps: d, claims: controller.InformerFor(d.Informers, core.PersistentVolumeClaims),
		volumes: controller.InformerFor(d.Informers, core.PersistentVolumes)}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "volume_expand", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	wake := func(claim *corev1.PersistentVolumeClaim) { c.loop.Add(controller.KeyOf(claim)) }
	return c, errors.Join(
		controller.Watch(c.loop, c.claims,
			controller.Handlers[*corev1.PersistentVolumeClaim]{Add: wake,
				Update: func(old, claim *corev1.PersistentVolumeClaim) {
					was, is := old.Spec.Resources.Requests[corev1.ResourceStorage],
						claim.Spec.Resources.Requests[corev1.ResourceStorage]
					if is.Cmp(was) > 0 {
						wake(claim)
					}
				}}),
		controller.Watch(c.loop, c.volumes, controller.Handlers[*corev1.PersistentVolume]{}),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile records an event for a claim that is to grow.
func (c *Controller) Reconcile(_ context.Context, key controller.Key) (controller.Result, error) {
	claim, ok := c.claims.Get(key)
	if !ok || claim.Status.Phase != corev1.ClaimBound {
		return controller.Result{}, nil
	}
	v, ok := c.volumes.Get(controller.Key{Name: claim.Spec.VolumeName})
	if !ok || !volumebinding.Meant(v, claim) {
		return controller.Result{}, nil
	}
	asks, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	if asks.Cmp(has) > 0 {
		c.Events.Event(claim, corev1.EventTypeNormal, "ExternalExpanding",
			"waiting for an external controller to expand this PVC")
	}
	return controller.Result{}, nil
}
