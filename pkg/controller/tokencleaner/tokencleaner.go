// Package tokencleaner deletes bootstrap tokens when they expire.
package tokencleaner

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
)

const (
	namespace  = "kube-system"
	secretType = "bootstrap.kubernetes.io/token"
	expiration = "expiration"
)

// Controller reconciles the Secrets of bootstrap tokens.
type Controller struct {
	controller.Deps
	secrets *controller.Informer[*corev1.Secret]
	writes  *apiclient.Resource[*corev1.Secret]
	loop    *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{
		Deps: d, writes: core.Secrets(d.Client),
		secrets: controller.FilteredInformerFor(d.Informers, core.Secrets,
			apiclient.Selection{Namespace: namespace, Fields: "type=" + secretType}),
	}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "token-cleaner", Workers: 1, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	return c, controller.WatchKeys(c.loop, c.secrets)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile deletes an expired token, or comes back when it will have expired.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	s, ok := c.secrets.Get(key)
	if !ok {
		return controller.Result{}, nil
	}
	left, expires := remaining(s, c.Now())
	if !expires {
		return controller.Result{}, nil
	}
	if left > 0 {
		return controller.Result{RequeueAfter: left}, nil
	}
	if err := c.writes.Delete(ctx, s.Namespace, s.Name, s.UID); err != nil && !apierrors.IsNotFound(err) &&
		!apierrors.IsConflict(err) {
		return controller.Result{}, fmt.Errorf("deleting the expired bootstrap token %s: %w", key, err)
	}
	return controller.Result{}, nil
}

// remaining returns how long a token is still good; one with an unreadable date is expired, one without a date never
// is.
func remaining(s *corev1.Secret, now time.Time) (left time.Duration, expires bool) {
	text := string(s.Data[expiration])
	if text == "" {
		return 0, false
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, true
	}
	return at.Sub(now), true
}
