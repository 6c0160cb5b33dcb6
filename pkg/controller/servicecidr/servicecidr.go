// Package servicecidr marks ranges of service addresses as ready. A range that is being deleted stays until every
// address of it that is in use also belongs to another range (KEP-1880).
package servicecidr

import (
	"context"
	"errors"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/networking"
	"bonsai/pkg/controller"
)

// Controller reconciles ServiceCIDRs.
type Controller struct {
	controller.Deps
	cidrs     *controller.Informer[*networkingv1.ServiceCIDR]
	addresses *controller.Informer[*networkingv1.IPAddress]
	writes    *apiclient.Resource[*networkingv1.ServiceCIDR]
	loop      *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{Deps: d, cidrs: controller.InformerFor(d.Informers, networking.ServiceCIDRs),
		addresses: controller.InformerFor(d.Informers, networking.IPAddresses),
		writes:    networking.ServiceCIDRs(d.Client)}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "service-cidr", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	return c, errors.Join(
		controller.Watch(c.loop, c.cidrs, controller.All(func(r *networkingv1.ServiceCIDR) {
			c.loop.Add(controller.KeyOf(r))
			c.addEnding() // which this one may free or hold
		})),
		controller.Watch(c.loop, c.addresses, controller.Handlers[*networkingv1.IPAddress]{
			Add: func(*networkingv1.IPAddress) {
				c.addEnding()
			}, Delete: func(*networkingv1.IPAddress) { c.addEnding() },
		}),
	)
}

// addEnding asks for all ranges that are being deleted.
func (c *Controller) addEnding() {
	for _, r := range c.cidrs.List() {
		if r.DeletionTimestamp != nil {
			c.loop.Add(controller.KeyOf(r))
		}
	}
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile carries out what decide returns for one range.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	r, ok := c.cidrs.Get(key)
	if !ok {
		return controller.Result{}, nil
	}
	var held []string
	if r.DeletionTimestamp != nil {
		for _, a := range c.addresses.List() {
			held = append(held, a.Name)
		}
	}
	a := decide(r, c.cidrs.List(), held, c.Now())
	if a.finalizers != nil {
		r = r.DeepCopy()
		r.Finalizers = *a.finalizers
		var err error
		if r, err = c.writes.Update(ctx, r); err != nil {
			return controller.Result{}, fmt.Errorf("writing the finalizers of ServiceCIDR %s: %w", key.Name, err)
		}
	}
	if a.conditions != nil {
		r = r.DeepCopy()
		r.Status.Conditions = a.conditions
		if _, err := c.writes.UpdateStatus(ctx, r); err != nil {
			return controller.Result{}, fmt.Errorf("writing the status of ServiceCIDR %s: %w", key.Name, err)
		}
	}
	return controller.Result{RequeueAfter: a.after}, nil
}
