// Package endpointslicemirroring copies Endpoints that people or programs of their own write for a Service without a
// selector to EndpointSlices, which is what is read. Those of Services with a selector the endpointslice package makes
// from pods.
package endpointslicemirroring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/discovery"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/backends"
)

// managedBy marks the slices that are ours.
const managedBy = "endpointslicemirroring-controller.k8s.io"

// leaderAnnotation is on Endpoints that are no endpoints, but the lock of an old leader election.
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// Config is what the flags say.
type Config struct {
	// MaxPerSubset is the most addresses of one subset that are mirrored, 1 to 1000. The others are left out, with an
	// event.
	MaxPerSubset int
	// Batch is how long a change of Endpoints waits for more of them.
	Batch time.Duration
}

// Controller reconciles Endpoints, and the Services of their names.
type Controller struct {
	controller.Deps
	cfg        Config
	endpoints  *controller.Informer[*corev1.Endpoints]
	services   *controller.Informer[*corev1.Service]
	slices     *controller.Informer[*discoveryv1.EndpointSlice]
	ofService  backends.SliceIndex
	namespaces *controller.Informer[*corev1.Namespace]
	writes     *apiclient.Resource[*discoveryv1.EndpointSlice]
	written    *backends.Written
	metrics    *metrics
	loop       *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps, cfg Config) (*Controller, error) {
	c := &Controller{
		Deps: d, cfg: cfg, written: backends.NewWritten(),
		endpoints:  controller.InformerFor(d.Informers, core.Endpoints),
		services:   controller.InformerFor(d.Informers, core.Services),
		slices:     controller.InformerFor(d.Informers, discovery.EndpointSlices),
		namespaces: controller.InformerFor(d.Informers, core.Namespaces),
		writes:     discovery.EndpointSlices(d.Client),
		metrics:    newMetrics(d.Metrics),
	}
	c.ofService = backends.NewSliceIndex(c.slices)
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "endpoint_slice_mirroring", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.Reconcile)
	return c, errors.Join(
		controller.Watch(c.loop, c.endpoints, controller.All(func(e *corev1.Endpoints) {
			c.loop.AddAfter(controller.KeyOf(e), c.cfg.Batch)
		})),
		controller.WatchKeys(c.loop, c.services),
		controller.Watch(c.loop, c.slices, controller.All(func(s *discoveryv1.EndpointSlice) {
			if s.Labels[discoveryv1.LabelManagedBy] == managedBy {
				c.loop.Add(controller.Key{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]})
			}
		})),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile makes the slices of one Service match its Endpoints, or removes them where there is nothing to mirror.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	seen := c.slices.Seen()
	have := slices.DeleteFunc(c.ofService.Of(key), func(s *discoveryv1.EndpointSlice) bool {
		return s.Labels[discoveryv1.LabelManagedBy] != managedBy
	})
	if !c.written.CaughtUp(key, have, seen) {
		return controller.Result{}, nil
	}
	have = slices.DeleteFunc(have, func(s *discoveryv1.EndpointSlice) bool { return s.DeletionTimestamp != nil })
	eps, ok := c.endpoints.Get(key)
	svc, served := c.services.Get(key)
	if !ok || !served || !mirrors(eps, svc) {
		c.metrics.Set(key, backends.Size{})
		return controller.Result{}, c.apply(ctx, key, changes{remove: have})
	}
	begun := c.Now()
	wanted, skipped := group(eps, c.cfg.MaxPerSubset)
	if skipped > 0 {
		c.Events.Eventf(eps, corev1.EventTypeWarning, "TooManyAddressesToMirror",
			"A max of %d addresses can be mirrored to EndpointSlices per Endpoints subset. %d addresses were skipped",
			c.cfg.MaxPerSubset, skipped)
	}
	p := plan(eps, wanted, have, c.cfg.MaxPerSubset)
	c.metrics.planned(key, wanted, have, p, c.cfg.MaxPerSubset, skipped)
	err := c.apply(ctx, key, p)
	c.metrics.took.Observe(c.Now().Sub(begun).Seconds())
	if err != nil && !apierrors.IsConflict(err) {
		c.Events.Eventf(eps, corev1.EventTypeWarning, "FailedToUpdateEndpointSlices",
			"Error updating Endpoint Slices for Endpoints %s: %v", key, err)
	}
	return controller.Result{}, err
}

// mirrors reports whether the Endpoints of a Service are to be mirrored.
func mirrors(eps *corev1.Endpoints, svc *corev1.Service) bool {
	_, lock := eps.Annotations[leaderAnnotation]
	return eps.Labels[discoveryv1.LabelSkipMirror] != "true" && !lock && len(svc.Spec.Selector) == 0 &&
		eps.DeletionTimestamp == nil && svc.DeletionTimestamp == nil
}

// apply writes the changes and remembers them.
func (c *Controller) apply(ctx context.Context, key controller.Key, p changes) error {
	if controller.Ending(c.namespaces, key.Namespace) {
		p.create = nil
	}
	for _, s := range p.create {
		made, err := c.writes.Create(ctx, s)
		if controller.NamespaceEnding(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("creating an EndpointSlice for Endpoints %s: %w", key, err)
		}
		c.metrics.Created()
		c.written.Remember(key, made.Name, made.ResourceVersion)
	}
	for _, s := range p.update {
		updated, err := c.writes.Update(ctx, s)
		if err != nil {
			return fmt.Errorf("updating EndpointSlice %s of Endpoints %s: %w", s.Name, key, err)
		}
		c.metrics.Updated()
		c.written.Remember(key, updated.Name, updated.ResourceVersion)
	}
	for _, s := range p.remove {
		if err := c.writes.Delete(ctx, s.Namespace, s.Name, s.UID); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting EndpointSlice %s of Endpoints %s: %w", s.Name, key, err)
		}
		c.metrics.Deleted()
		c.written.Remember(key, s.Name, "")
	}
	return nil
}
