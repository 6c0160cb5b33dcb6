// Package service gives Services of type LoadBalancer their balancers: a provider makes them, this controller says
// when, and writes what came of it to the service's status. A Service with a loadBalancerClass is somebody else's.
//
// The contract: https://kubernetes.io/docs/concepts/services-networking/service/#loadbalancer.
package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
)

// Provider makes balancers. It is called for one service at a time; each call may be made again after it succeeded.
type Provider interface {
	// Ensure makes the balancer of a service, or changes it to what the service says now, and returns where it is
	// reached. nodes are those that it may send to.
	Ensure(ctx context.Context, s *corev1.Service, nodes []*corev1.Node) (*corev1.LoadBalancerStatus, error)
	// Update tells an existing balancer of other nodes.
	Update(ctx context.Context, s *corev1.Service, nodes []*corev1.Node) error
	// Release takes the balancer of a service away; there may be none.
	Release(ctx context.Context, s *corev1.Service) error
}

// Controller reconciles Services.
type Controller struct {
	controller.Deps
	provider Provider
	services *controller.Informer[*corev1.Service]
	nodes    *controller.Informer[*corev1.Node]
	writes   *apiclient.Resource[*corev1.Service]
	loop     *controller.Loop[controller.Key]
	synced   prometheus.Counter

	mu   sync.Mutex
	done map[controller.Key]*done
}

// New returns the controller; its caches fill when d.Informers run. provider is given what lists all services.
func New(d controller.Deps, provider func(services func() []*corev1.Service) (Provider, error)) (*Controller, error) {
	c := &Controller{Deps: d, writes: core.Services(d.Client), done: map[controller.Key]*done{},
		services: controller.InformerFor(d.Informers, core.Services),
		nodes:    controller.InformerFor(d.Informers, core.Nodes),
		synced: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "service_controller_loadbalancer_sync_total",
				Help: "Services whose load balancers were created, changed or removed."})}
	d.Metrics.Register(c.synced)
	var err error
	if c.provider, err = provider(c.services.List); err != nil {
		return nil, err
	}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "service", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	nodesChanged := controller.Handlers[*corev1.Node]{Add: func(*corev1.Node) {
		c.all()
	}, Update: func(old, now *corev1.Node) {
		if len(balanced([]*corev1.Node{old})) != len(balanced([]*corev1.Node{now})) {
			c.all()
		}
	}, Delete: func(*corev1.Node) { c.all() }}
	return c, errors.Join(controller.WatchKeys(c.loop, c.services), controller.Watch(c.loop, c.nodes, nodesChanged))
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// all has every service with a balancer looked at again.
func (c *Controller) all() {
	for _, s := range c.services.List() {
		if wants(s) {
			c.loop.Add(controller.KeyOf(s))
		}
	}
}

// Reconcile does what one service needs.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	s, ok := c.services.Get(key)
	if !ok {
		c.remember(key, nil)
		return controller.Result{}, nil
	}
	nodes := balanced(c.nodes.List())
	c.mu.Lock()
	last := c.done[key]
	c.mu.Unlock()
	var err error
	switch decide(s, last, nodes) {
	case ensure:
		err = c.ensure(ctx, s, nodes)
	case update:
		return controller.Result{}, c.update(ctx, s, nodes)
	case release:
		err = c.release(ctx, s)
	default:
		return controller.Result{}, nil
	}
	c.synced.Inc()
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil // the service is gone; the cache will say so
	}
	if err != nil {
		c.Events.Eventf(s, corev1.EventTypeWarning, "SyncLoadBalancerFailed", "Error syncing load balancer: %v", err)
	}
	return controller.Result{}, err
}

func (c *Controller) ensure(ctx context.Context, s *corev1.Service, nodes []*corev1.Node) error {
	c.Events.Event(s, corev1.EventTypeNormal, "EnsuringLoadBalancer", "Ensuring load balancer")
	// First the finalizer: what is made must be taken away, whatever happens then.
	if !slices.Contains(s.Finalizers, Finalizer) {
		if err := c.patch(ctx, s, `{"metadata":{"uid":%q,"finalizers":[%q]}}`, s.UID, Finalizer); err != nil {
			return fmt.Errorf("failed to add load balancer cleanup finalizer: %w", err)
		}
	}
	status, err := c.provider.Ensure(ctx, s, nodes)
	if err != nil {
		return fmt.Errorf("failed to ensure load balancer: %w", err)
	}
	if !apiequality.Semantic.DeepEqual(&s.Status.LoadBalancer, status) {
		ingress, err := json.Marshal(status.Ingress)
		if err != nil {
			return fmt.Errorf("encode the load balancer status: %w", err)
		}
		if err := c.patch(ctx, s, `{"metadata":{"uid":%q},"status":{"loadBalancer":{"ingress":%s}}}`, s.UID,
			ingress); err != nil {
			return fmt.Errorf("failed to update load balancer status: %w", err)
		}
	}
	c.remember(controller.KeyOf(s), doneFor(s, nodes))
	c.Events.Event(s, corev1.EventTypeNormal, "EnsuredLoadBalancer", "Ensured load balancer")
	return nil
}

func (c *Controller) update(ctx context.Context, s *corev1.Service, nodes []*corev1.Node) error {
	if len(nodes) == 0 {
		c.Events.Event(s, corev1.EventTypeWarning, "UnAvailableLoadBalancer",
			"There are no available nodes for LoadBalancer")
	}
	if err := c.provider.Update(ctx, s, nodes); err != nil {
		c.Events.Eventf(s, corev1.EventTypeWarning, "UpdateLoadBalancerFailed",
			"Error updating load balancer with new hosts %v: %v", names(nodes), err)
		return fmt.Errorf("updating the balancer of %s/%s: %w", s.Namespace, s.Name, err)
	}
	c.remember(controller.KeyOf(s), doneFor(s, nodes))
	c.Events.Event(s, corev1.EventTypeNormal, "UpdatedLoadBalancer", "Updated load balancer with new hosts")
	return nil
}

func (c *Controller) release(ctx context.Context, s *corev1.Service) error {
	c.Events.Event(s, corev1.EventTypeNormal, "DeletingLoadBalancer", "Deleting load balancer")
	if err := c.provider.Release(ctx, s); err != nil {
		return fmt.Errorf("failed to delete load balancer: %w", err)
	}
	c.remember(controller.KeyOf(s), nil)
	if len(s.Status.LoadBalancer.Ingress) > 0 {
		if err := c.patch(ctx, s, `{"metadata":{"uid":%q},"status":{"loadBalancer":{"ingress":null}}}`,
			s.UID); err != nil {
			return fmt.Errorf("failed to update load balancer status: %w", err)
		}
	}
	// Last, for a service that is being deleted goes with it. The finalizers of others stay.
	if err := c.patch(ctx, s, `{"metadata":{"uid":%q,"$deleteFromPrimitiveList/finalizers":[%q]}}`, s.UID,
		Finalizer); err != nil {
		return fmt.Errorf("failed to remove load balancer cleanup finalizer: %w", err)
	}
	c.Events.Event(s, corev1.EventTypeNormal, "DeletedLoadBalancer", "Deleted load balancer")
	return nil
}

// patch writes finalizers or status; both are the status subresource's to write. The patch is for this service and none
// of its name.
func (c *Controller) patch(ctx context.Context, s *corev1.Service, format string, args ...any) error {
	_, err := c.writes.Patch(ctx, s.Namespace, s.Name, types.StrategicMergePatchType, fmt.Appendf(nil, format, args...),
		"status")
	return err
}

func (c *Controller) remember(key controller.Key, d *done) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d == nil {
		delete(c.done, key)
	} else {
		c.done[key] = d
	}
}
