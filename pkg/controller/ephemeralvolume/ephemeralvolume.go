// Package ephemeralvolume makes the claims of pods' generic ephemeral volumes: one for each, owned by its pod, with
// which it goes.
package ephemeralvolume

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/podindex"
)

// Controller reconciles pods with ephemeral volumes.
type Controller struct {
	controller.Deps
	pods   *controller.Informer[*corev1.Pod]
	users  podindex.ByClaim
	claims *controller.Informer[*corev1.PersistentVolumeClaim]
	writes *apiclient.Resource[*corev1.PersistentVolumeClaim]
	// made and failed are upstream's metrics.
	made, failed prometheus.Counter
	loop         *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{
		Deps: d, pods: controller.InformerFor(d.Informers, core.Pods),
		claims: controller.InformerFor(d.Informers, core.PersistentVolumeClaims),
		writes: core.PersistentVolumeClaims(d.Client),
		made: prometheus.NewCounter(
			prometheus.CounterOpts{Subsystem: "ephemeral_volume_controller", Name: "create_total",
				Help: "Number of PersistentVolumeClaim creation requests"}),
		failed: prometheus.NewCounter(
			prometheus.CounterOpts{Subsystem: "ephemeral_volume_controller", Name: "create_failures_total",
				Help: "Number of PersistentVolumeClaim creation requests that failed"}),
	}
	c.users = podindex.NewByClaim(c.pods)
	d.Metrics.Register(c.made)
	d.Metrics.Register(c.failed)
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "ephemeral_volume", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.Reconcile)
	return c, errors.Join(
		controller.Watch(c.loop, c.pods, controller.Handlers[*corev1.Pod]{Add: c.wake, Update: func(_, p *corev1.Pod) {
			c.wake(p)
		}}),
		// A claim that goes from under its pod is made again, and one of another owner may have been in the way.
		controller.Watch(c.loop, c.claims,
			controller.Handlers[*corev1.PersistentVolumeClaim]{Delete: func(claim *corev1.PersistentVolumeClaim) {
				for _, p := range c.users.Using(controller.KeyOf(claim)) {
					c.wake(p)
				}
			}}),
	)
}

// wake adds a pod that may miss a claim.
func (c *Controller) wake(p *corev1.Pod) {
	for i := range p.Spec.Volumes {
		if v := &p.Spec.Volumes[i]; v.Ephemeral != nil {
			if _, ok := c.claims.Get(controller.Key{Namespace: p.Namespace, Name: controller.ClaimOf(p, v)}); !ok {
				c.loop.Add(controller.KeyOf(p))
				return
			}
		}
	}
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile makes the claims that a pod misses. A pod that is being deleted gets none any more.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	p, ok := c.pods.Get(key)
	if !ok || p.DeletionTimestamp != nil || controller.PodTerminal(p) {
		return controller.Result{}, nil
	}
	var errs []error
	for i := range p.Spec.Volumes {
		if v := &p.Spec.Volumes[i]; v.Ephemeral != nil {
			errs = append(errs, c.ensure(ctx, p, v))
		}
	}
	return controller.Result{}, errors.Join(errs...)
}

// ensure makes the claim of one volume if there is none of its name. One of another owner is not taken.
func (c *Controller) ensure(ctx context.Context, p *corev1.Pod, v *corev1.Volume) error {
	want := claimFor(p, v)
	if have, ok := c.claims.Get(controller.KeyOf(want)); ok {
		if metav1.IsControlledBy(have, p) {
			return nil
		}
		err := fmt.Errorf("PVC %q was not created for pod %q (pod is not owner)", controller.KeyOf(have),
			controller.KeyOf(p))
		c.Events.Eventf(p, corev1.EventTypeWarning, "EphemeralVolumeFailed", "ephemeral volume %s: %v", v.Name, err)
		return controller.TerminalError(err) // its deletion brings the pod back
	}
	c.made.Inc()
	if _, err := c.writes.Create(ctx, want); err != nil {
		c.failed.Inc()
		err = fmt.Errorf("create PVC %s: %w", want.Name, err)
		c.Events.Eventf(p, corev1.EventTypeWarning, "EphemeralVolumeFailed", "ephemeral volume %s: %v", v.Name, err)
		return err
	}
	return nil
}

// claimFor is the claim of a pod's ephemeral volume.
func claimFor(p *corev1.Pod, v *corev1.Volume) *corev1.PersistentVolumeClaim {
	t := v.Ephemeral.VolumeClaimTemplate
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: controller.ClaimOf(p, v), Labels: t.Labels, Annotations: t.Annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod", Name: p.Name, UID: p.UID,
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: t.Spec,
	}
}
