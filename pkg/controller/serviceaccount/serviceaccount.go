// Package serviceaccount makes sure that every living namespace has its ServiceAccount "default".
package serviceaccount

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
)

const name = "default"

// Controller reconciles namespaces, keyed by their name.
type Controller struct {
	namespaces *controller.Informer[*corev1.Namespace]
	accounts   *controller.Informer[*corev1.ServiceAccount]
	writes     *apiclient.Resource[*corev1.ServiceAccount]
	loop       *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{
		namespaces: controller.InformerFor(d.Informers, core.Namespaces),
		accounts:   controller.InformerFor(d.Informers, core.ServiceAccounts),
		writes:     core.ServiceAccounts(d.Client),
	}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "serviceaccount", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	return c, errors.Join(
		controller.WatchKeys(c.loop, c.namespaces),
		controller.Watch(c.loop, c.accounts,
			controller.Handlers[*corev1.ServiceAccount]{Delete: func(sa *corev1.ServiceAccount) {
				if sa.Name == name {
					c.loop.Add(controller.Key{Name: sa.Namespace})
				}
			}}),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile creates the account if it is missing.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	if _, ok := c.namespaces.Get(key); !ok || controller.Ending(c.namespaces, key.Name) {
		return controller.Result{}, nil
	}
	if _, ok := c.accounts.Get(controller.Key{Namespace: key.Name, Name: name}); ok {
		return controller.Result{}, nil
	}
	_, err := c.writes.Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: key.Name, Name: name}})
	if err == nil || apierrors.IsAlreadyExists(err) || controller.NamespaceEnding(err) {
		return controller.Result{}, nil
	}
	return controller.Result{}, fmt.Errorf("creating the service account %s/%s: %w", key.Name, name, err)
}
