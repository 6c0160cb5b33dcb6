// Package endpoints keeps the deprecated Endpoints object of each Service for those who still read it. EndpointSlices
// tell the same with less.
package endpoints

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/backends"
)

const (
	managedByLabel = "endpoints.kubernetes.io/managed-by"
	managedBy      = "endpoint-controller"
)

// Controller reconciles Services.
type Controller struct {
	controller.Deps
	services   *controller.Informer[*corev1.Service]
	pods       *controller.Informer[*corev1.Pod]
	namespaces *controller.Informer[*corev1.Namespace]
	endpoints  *controller.Informer[*corev1.Endpoints]
	writes     *apiclient.Resource[*corev1.Endpoints]
	triggers   *backends.Triggers
	backends   *backends.Index
	loop       *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{
		Deps: d, triggers: backends.NewTriggers(), services: controller.InformerFor(d.Informers, core.Services),
		pods:       controller.InformerFor(d.Informers, core.Pods),
		namespaces: controller.InformerFor(d.Informers, core.Namespaces),
		endpoints:  controller.InformerFor(d.Informers, core.Endpoints), writes: core.Endpoints(d.Client),
	}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "endpoint", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	var err error
	c.backends, err = backends.Watch(c.loop, c.services, c.pods)
	return c, errors.Join(err, controller.WatchKeys(c.loop, c.endpoints))
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile writes the Endpoints of one Service, or deletes those of one that is gone.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	have, exists := c.endpoints.Get(key)
	svc, ok := c.services.Get(key)
	if !ok {
		c.triggers.Forget(key)
		if !exists || have.Labels[managedByLabel] != managedBy {
			return controller.Result{}, nil
		}
		if err := c.writes.Delete(ctx, key.Namespace, key.Name, have.UID); err != nil && !apierrors.IsNotFound(err) &&
			!apierrors.IsConflict(err) {
			return controller.Result{}, fmt.Errorf("deleting the Endpoints of Service %s: %w", key, err)
		}
		return controller.Result{}, nil
	}
	if len(svc.Spec.Selector) == 0 || svc.Spec.Type == corev1.ServiceTypeExternalName || svc.DeletionTimestamp != nil {
		return controller.Result{}, nil
	}
	if !exists && controller.Ending(c.namespaces, key.Namespace) {
		return controller.Result{}, nil
	}
	want := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if exists {
		want = have.DeepCopy()
	}
	pods := c.backends.Of(svc)
	trigger := c.triggers.Earliest(svc, pods)
	describe(want, svc, pods)
	if exists && equality.Semantic.DeepEqual(have, want) {
		return controller.Result{}, nil
	}
	want.Annotations = backends.WithTrigger(want.Annotations, trigger)
	var err error
	if exists {
		_, err = c.writes.Update(ctx, want)
	} else {
		_, err = c.writes.Create(ctx, want)
	}
	if err == nil || controller.NamespaceEnding(err) {
		return controller.Result{}, nil
	}
	if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		c.Events.Eventf(svc, corev1.EventTypeWarning, "FailedToUpdateEndpoint", "Failed to update endpoint %s: %v", key,
			err)
	}
	return controller.Result{}, fmt.Errorf("writing the Endpoints of Service %s: %w", key, err)
}
