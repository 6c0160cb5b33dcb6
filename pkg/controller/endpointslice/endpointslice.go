// Package endpointslice writes EndpointSlices: the addresses and ports of the pods behind each Service, and whether
// they are ready. It remembers its own writes (backends.Written), and waits until the cache shows them: judged by an
// older cache, it would create a slice twice.
//
// A change of a pod, Service, node or slice wakes the Services that it concerns. A round compares what the pods ask for
// with the slices in the cache and writes the difference; it is repeated by the events of its own writes, and then
// finds nothing to do. The format is KEP-752.
package endpointslice

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/endpointslice/topologycache"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/discovery"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/backends"
	"bonsai/pkg/controller/podindex"
)

// managedBy marks the slices that are ours.
const managedBy = "endpointslice-controller.k8s.io"

// Controller reconciles Services.
//
// triggers, topology and written lock themselves: the workers share them.
type Controller struct {
	controller.Deps
	maxPerSlice int
	services    *controller.Informer[*corev1.Service]
	pods        *controller.Informer[*corev1.Pod]
	podsByNode  podindex.ByNode
	nodes       *controller.Informer[*corev1.Node]
	namespaces  *controller.Informer[*corev1.Namespace]
	slices      *controller.Informer[*discoveryv1.EndpointSlice]
	ofService   backends.SliceIndex
	backends    *backends.Index
	writes      *apiclient.Resource[*discoveryv1.EndpointSlice]
	triggers    *backends.Triggers
	topology    *topology
	written     *backends.Written
	metrics     *metrics
	loop        *controller.Loop[controller.Key]
}

// New returns the controller; a slice gets at most maxPerSlice endpoints (100 is Kubernetes' default).
func New(d controller.Deps, maxPerSlice int) (*Controller, error) {
	c := &Controller{
		Deps: d, maxPerSlice: maxPerSlice, triggers: backends.NewTriggers(), topology: newTopology(),
		services:   controller.InformerFor(d.Informers, core.Services),
		pods:       controller.InformerFor(d.Informers, core.Pods),
		nodes:      controller.InformerFor(d.Informers, core.Nodes),
		namespaces: controller.InformerFor(d.Informers, core.Namespaces),
		slices:     controller.InformerFor(d.Informers, discovery.EndpointSlices),
		writes:     discovery.EndpointSlices(d.Client),
		written:    backends.NewWritten(),
		metrics:    newMetrics(d.Metrics),
	}
	c.podsByNode, c.ofService = podindex.NewByNode(c.pods), backends.NewSliceIndex(c.slices)
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "endpoint_slice", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	var err error
	c.backends, err = backends.Watch(c.loop, c.services, c.pods)
	return c, errors.Join(
		err,
		controller.Watch(c.loop, c.nodes,
			controller.Handlers[*corev1.Node]{Add: c.wakeNode, Delete: c.wakeNode, Update: func(old, n *corev1.Node) {
				if old.Labels[corev1.LabelTopologyZone] != n.Labels[corev1.LabelTopologyZone] {
					c.wakeNode(n)
				} else if nodeChanged(old, n) {
					c.wakeTopology()
				}
			}}),
		controller.Watch(c.loop, c.slices, controller.All(func(s *discoveryv1.EndpointSlice) {
			if s.Labels[discoveryv1.LabelManagedBy] == managedBy {
				c.loop.Add(controller.Key{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]})
			}
		})),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// allNodes is the key under which the nodes' zones are looked at; every Service has a namespace and a name.
var allNodes = controller.Key{}

// wakeNode adds the Services with pods on a node, and those whose hints depend on all nodes.
//
// The pods of a node carry its zone in their endpoints, and are left out while it does not exist.
func (c *Controller) wakeNode(n *corev1.Node) {
	for _, p := range c.podsByNode.On(n.Name) {
		c.backends.Wake(p)
	}
	c.wakeTopology()
}

// wakeTopology adds the Services whose hints depend on all nodes, once for all nodes that change meanwhile.
func (c *Controller) wakeTopology() {
	c.topology.invalidate()
	c.loop.Add(allNodes)
}

// Reconcile makes the slices of one Service match its pods; for allNodes it finds the Services whose hints the nodes
// concern.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	if key == allNodes {
		for _, concerned := range c.topology.concerned(c.nodes.List) {
			c.loop.Add(concerned)
		}
		return controller.Result{}, nil
	}
	stale, err := c.reconcile(ctx, key)
	c.metrics.synced(stale, err)
	return controller.Result{}, err
}

// reconcile makes the slices of one Service match its pods. If the cache does not show its own last writes yet it does
// nothing and returns true: the event that is missing brings the Service back.
func (c *Controller) reconcile(ctx context.Context, key controller.Key) (stale bool, err error) {
	// Read before the slices: they may be newer than this version, never older.
	seen := c.slices.Seen()
	have := slices.DeleteFunc(c.ofService.Of(key), func(s *discoveryv1.EndpointSlice) bool {
		return s.Labels[discoveryv1.LabelManagedBy] != managedBy
	})
	caughtUp := c.written.CaughtUp(key, have, seen)
	svc, ok := c.services.Get(key)
	if !ok {
		c.triggers.Forget(key)
		c.topology.forget(key)
		c.metrics.Set(key, backends.Size{})
		// The slices have the Service as their owner; the garbage collector takes them.
		return false, nil
	}
	if len(svc.Spec.Selector) == 0 || svc.Spec.Type == corev1.ServiceTypeExternalName || svc.DeletionTimestamp != nil {
		c.topology.forget(key)
		c.metrics.Set(key, backends.Size{})
		return false, nil
	}
	// After the cases above, which need no slices and must not wait.
	if !caughtUp {
		return true, nil
	}
	pods := c.backends.Of(svc)
	// For the annotation endpoints.kubernetes.io/last-change-trigger-time, from which kube-proxy measures how late it
	// is.
	trigger := c.triggers.Earliest(svc, pods)
	if !modeAuto(svc) && c.topology.forget(key) {
		c.Events.Event(svc, corev1.EventTypeWarning, "TopologyAwareHintsDisabled",
			topologycache.TopologyAwareHintsDisabled)
	}
	var errs []error
	var all tally
	for _, family := range families(svc) {
		wanted, had := group(svc, family, pods, c.zone), ofFamily(have, family)
		p := plan(svc, family, wanted, had, c.maxPerSlice)
		if modeAuto(svc) {
			for _, e := range c.topology.hint(key, family, &p, c.nodes.List) {
				c.Events.Event(svc, e.EventType, e.Reason, e.Message)
			}
		}
		all.add(wanted, had, p, c.maxPerSlice)
		for _, s := range slices.Concat(p.create, p.update) {
			s.Annotations = backends.WithTrigger(s.Annotations, trigger)
		}
		errs = append(errs, c.apply(ctx, key, svc, p))
	}
	if stale := unwantedFamilies(svc, have); len(stale) > 0 {
		errs = append(errs, c.apply(ctx, key, svc, changes{remove: stale}))
	}
	c.metrics.planned(svc, all)
	return false, errors.Join(errs...)
}

// zone returns the zone of a node, "" if it has none, and whether the node is there.
//
// The caches are not filled in step: a pod may be known before its node, and the node's addition wakes the Service.
func (c *Controller) zone(node string) (string, bool) {
	n, ok := c.nodes.Get(controller.Key{Name: node})
	if !ok {
		return "", false
	}
	return n.Labels[corev1.LabelTopologyZone], true
}

// ofFamily leaves out slices that are being deleted: whatever is written into them is lost.
func ofFamily(all []*discoveryv1.EndpointSlice, f discoveryv1.AddressType) []*discoveryv1.EndpointSlice {
	var out []*discoveryv1.EndpointSlice
	for _, s := range all {
		if s.AddressType == f && s.DeletionTimestamp == nil {
			out = append(out, s)
		}
	}
	return out
}

// unwantedFamilies returns the slices of families that the Service no longer has.
func unwantedFamilies(svc *corev1.Service, all []*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	wanted := map[discoveryv1.AddressType]bool{}
	for _, f := range families(svc) {
		wanted[f] = true
	}
	var out []*discoveryv1.EndpointSlice
	for _, s := range all {
		if !wanted[s.AddressType] && s.DeletionTimestamp == nil {
			out = append(out, s)
		}
	}
	return out
}

// apply writes the changes and remembers them. Creations come first and removals last: an endpoint that moves to
// another slice is in two of them for a moment, which consumers have to expect, and never in none. It stops at the
// first error; the next round plans again from what is stored.
func (c *Controller) apply(ctx context.Context, key controller.Key, svc *corev1.Service, p changes) error {
	// The server would refuse them, once for each event of a pod that ends.
	if controller.Ending(c.namespaces, key.Namespace) {
		p.create = nil
	}
	for _, s := range p.create {
		made, err := c.writes.Create(ctx, s)
		if controller.NamespaceEnding(err) {
			return nil
		}
		if err != nil {
			return c.failed(svc, fmt.Errorf("creating an EndpointSlice for Service %s: %w", key, err))
		}
		c.metrics.Created()
		c.written.Remember(key, made.Name, made.ResourceVersion)
	}
	for _, s := range p.update {
		updated, err := c.writes.Update(ctx, s)
		if err != nil {
			return c.failed(svc, fmt.Errorf("updating EndpointSlice %s of Service %s: %w", s.Name, key, err))
		}
		c.metrics.Updated()
		c.written.Remember(key, updated.Name, updated.ResourceVersion)
	}
	for _, s := range p.remove {
		if err := c.writes.Delete(ctx, s.Namespace, s.Name, s.UID); err != nil && !apierrors.IsNotFound(err) {
			return c.failed(svc, fmt.Errorf("deleting EndpointSlice %s of Service %s: %w", s.Name, key, err))
		}
		c.metrics.Deleted()
		c.written.Remember(key, s.Name, "")
	}
	return nil
}

// failed records an error as an event and returns it. A conflict is no event: another writer was faster, and the next
// round sees its result.
func (c *Controller) failed(svc *corev1.Service, err error) error {
	if !apierrors.IsConflict(err) {
		c.Events.Eventf(svc, corev1.EventTypeWarning, "FailedToUpdateEndpointSlices",
			"Error updating Endpoint Slices for Service %s/%s: %v", svc.Namespace, svc.Name, err)
	}
	return err
}
