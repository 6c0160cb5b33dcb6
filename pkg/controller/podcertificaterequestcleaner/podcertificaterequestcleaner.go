// Package podcertificaterequestcleaner deletes PodCertificateRequests some time after they were made: the kubelet that
// asked has read the answer by then, or asks again.
package podcertificaterequestcleaner

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiclient"
	certificatesclient "bonsai/pkg/apiclient/certificates"
	"bonsai/pkg/controller"
)

// expiration is how long requests stay
// (https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#pod-certificate-requests).
const expiration = 15 * time.Minute

// Controller reconciles PodCertificateRequests.
type Controller struct {
	controller.Deps
	requests *controller.Informer[*certificatesv1.PodCertificateRequest]
	writes   *apiclient.Resource[*certificatesv1.PodCertificateRequest]
	loop     *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{
		Deps: d, writes: certificatesclient.PodCertificateRequests(d.Client),
		requests: controller.InformerFor(d.Informers, certificatesclient.PodCertificateRequests),
	}
	c.loop = controller.NewLoop(controller.LoopConfig{Name: "podcertificaterequestcleaner", Workers: d.Workers,
		Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	return c, controller.WatchKeys(c.loop, c.requests)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile deletes one request that is over, or comes back when it will be.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	r, ok := c.requests.Get(key)
	if !ok {
		return controller.Result{}, nil
	}
	if left := r.CreationTimestamp.Add(expiration).Sub(c.Now()); left > 0 {
		return controller.Result{RequeueAfter: left}, nil
	}
	if err := c.writes.Delete(ctx, r.Namespace, r.Name, r.UID); err != nil && !apierrors.IsNotFound(err) &&
		!apierrors.IsConflict(err) {
		return controller.Result{}, fmt.Errorf("delete PodCertificateRequest %s: %w", key, err)
	}
	return controller.Result{}, nil
}
