// Package csrcleaner deletes CertificateSigningRequests that are over: who asked has had the time to read the answer.
package csrcleaner

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiclient"
	certificatesclient "bonsai/pkg/apiclient/certificates"
	"bonsai/pkg/controller"
)

// How long requests stay
// (https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#request-signing-process).
const (
	pendingExpiration = 24 * time.Hour
	settledExpiration = time.Hour
)

// Controller reconciles CertificateSigningRequests.
type Controller struct {
	controller.Deps
	requests *controller.Informer[*certificatesv1.CertificateSigningRequest]
	writes   *apiclient.Resource[*certificatesv1.CertificateSigningRequest]
	loop     *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{
		Deps: d, writes: certificatesclient.CertificateSigningRequests(d.Client),
		requests: controller.InformerFor(d.Informers, certificatesclient.CertificateSigningRequests),
	}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "csrcleaner", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
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
	at, ends := over(r)
	if !ends {
		return controller.Result{}, nil
	}
	if left := at.Sub(c.Now()); left > 0 {
		return controller.Result{RequeueAfter: left}, nil
	}
	if err := c.writes.Delete(ctx, "", r.Name, r.UID); err != nil && !apierrors.IsNotFound(err) &&
		!apierrors.IsConflict(err) {
		return controller.Result{}, fmt.Errorf("unable to delete CSR %q: %w", r.Name, err)
	}
	return controller.Result{}, nil
}

// over returns when a request is over. One that is approved and not signed waits for its signer.
func over(r *certificatesv1.CertificateSigningRequest) (at time.Time, ends bool) {
	earlier := func(t time.Time) {
		if !ends || t.Before(at) {
			at, ends = t, true
		}
	}
	if len(r.Status.Conditions) == 0 {
		earlier(r.CreationTimestamp.Add(pendingExpiration))
	}
	for _, c := range r.Status.Conditions {
		switch {
		case c.Type == certificatesv1.CertificateDenied, c.Type == certificatesv1.CertificateFailed,
			c.Type == certificatesv1.CertificateApproved && len(r.Status.Certificate) > 0:
			earlier(c.LastUpdateTime.Add(settledExpiration))
		}
	}
	if block, _ := pem.Decode(r.Status.Certificate); block != nil {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			earlier(cert.NotAfter)
		}
	}
	return at, ends
}
