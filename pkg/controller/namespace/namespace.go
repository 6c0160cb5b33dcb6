// Package namespace empties namespaces that are being deleted: every object of every resource that the API server
// serves at that moment. While something stays, the namespace's conditions say what and why.
package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/metadata"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/served"
	"bonsai/pkg/controller"
)

// Controller reconciles namespaces, keyed by their name.
type Controller struct {
	controller.Deps
	namespaces *controller.Informer[*corev1.Namespace]
	pods       *controller.Informer[*corev1.Pod]
	writes     *apiclient.Resource[*corev1.Namespace]
	metadata   metadata.Interface
	loop       *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	m, err := served.Metadata(d.Client)
	if err != nil {
		return nil, err
	}
	c := &Controller{
		Deps: d, namespaces: controller.InformerFor(d.Informers, core.Namespaces),
		pods: controller.InformerFor(d.Informers, core.Pods), writes: core.Namespaces(d.Client), metadata: m,
	}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "namespace", Workers: d.Workers, MaxBackoff: 5 * time.Second, Log: d.Log,
			Metrics: d.Metrics}, c.Reconcile)
	leaving := controller.Handlers[*corev1.Namespace]{
		Add:    func(ns *corev1.Namespace) { c.wake(ns) },
		Update: func(_, ns *corev1.Namespace) { c.wake(ns) },
	}
	return c, errors.Join(
		controller.Watch(c.loop, c.namespaces, leaving),
		controller.Watch(c.loop, c.pods, controller.Handlers[*corev1.Pod]{Delete: func(p *corev1.Pod) {
			if ns, ok := c.namespaces.Get(controller.Key{Name: p.Namespace}); ok {
				c.wake(ns)
			}
		}}),
	)
}

func (c *Controller) wake(ns *corev1.Namespace) {
	if ns.DeletionTimestamp != nil {
		c.loop.Add(controller.KeyOf(ns))
	}
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile deletes what is in a terminating namespace, reports what is left, and lets the namespace go when it is
// empty.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	cached, ok := c.namespaces.Get(key)
	if !ok || cached.DeletionTimestamp == nil || !slices.Contains(cached.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return controller.Result{}, nil
	}
	ns := cached.DeepCopy()
	if ns.Status.Phase != corev1.NamespaceTerminating {
		ns.Status.Phase = corev1.NamespaceTerminating
		updated, err := c.writes.UpdateStatus(ctx, ns)
		if err != nil {
			return gone(err)
		}
		ns = updated
	}
	found := c.empty(ctx, ns)
	setConditions(&ns.Status, found, c.Now())
	if !equality.Semantic.DeepEqual(cached.Status.Conditions, ns.Status.Conditions) {
		updated, err := c.writes.UpdateStatus(ctx, ns)
		if err != nil {
			return gone(err)
		}
		ns = updated
	}
	if err := found.err(); err != nil {
		return controller.Result{}, fmt.Errorf("emptying namespace %s: %w", key.Name, err)
	}
	if len(found.remaining) > 0 {
		return controller.Result{Backoff: true}, nil
	}
	ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool {
		return f == corev1.FinalizerKubernetes
	})
	_, err := c.writes.UpdateSub(ctx, ns, "finalize")
	return gone(err)
}

// gone takes a namespace that is no longer there for success.
func gone(err error) (controller.Result, error) {
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	return controller.Result{}, err
}
