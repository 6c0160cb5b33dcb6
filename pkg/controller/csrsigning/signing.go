// Package csrsigning issues the certificates of approved CertificateSigningRequests for Kubernetes' own signers.
package csrsigning

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/api/certificates"
	"bonsai/pkg/apiclient"
	certificatesclient "bonsai/pkg/apiclient/certificates"
	"bonsai/pkg/controller"
)

// Config is what the flags say.
type Config struct {
	// Authorities are by the name of their signer. They are asked for whenever one signs: its files may have been
	// replaced.
	Authorities map[string]func() (*Authority, error)
	// Duration is the longest lifetime of a certificate, and that of those that ask for none.
	Duration time.Duration
}

// Controller reconciles CertificateSigningRequests.
type Controller struct {
	controller.Deps
	cfg      Config
	requests *controller.Informer[*certificatesv1.CertificateSigningRequest]
	writes   *apiclient.Resource[*certificatesv1.CertificateSigningRequest]
	loop     *controller.Loop[controller.Key]
}

// New returns the controller, or why an authority cannot be read; its caches fill when d.Informers run.
func New(d controller.Deps, cfg Config) (*Controller, error) {
	for signer, load := range cfg.Authorities {
		if _, err := load(); err != nil {
			return nil, fmt.Errorf("the certificate authority of %s: %w", signer, err)
		}
	}
	c := &Controller{
		Deps: d, cfg: cfg, writes: certificatesclient.CertificateSigningRequests(d.Client),
		requests: controller.InformerFor(d.Informers, certificatesclient.CertificateSigningRequests),
	}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "certificate_signing", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.Reconcile)
	return c, controller.WatchKeys(c.loop, c.requests)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile signs one request, or says that its signer does not.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	r, ok := c.requests.Get(key)
	if !ok || !waits(&r.Status) {
		return controller.Result{}, nil
	}
	load, ok := c.cfg.Authorities[r.Spec.SignerName]
	if !ok {
		return controller.Result{}, nil
	}
	r = r.DeepCopy()
	asked, err := certificates.ParseRequest(r.Spec.Request)
	if err != nil {
		return controller.Result{}, controller.TerminalError(fmt.Errorf("unable to parse csr %q: %w", r.Name, err))
	}
	if err := certificates.CheckSigner(r.Spec.SignerName, asked, r.Spec.Usages); err != nil {
		certificates.SetCondition(&r.Status, certificatesv1.CertificateFailed, "SignerValidationFailure", err.Error(),
			c.Now())
	} else {
		ca, err := load()
		if err == nil {
			r.Status.Certificate, err = ca.sign(asked, r.Spec.Usages,
				lifetimeOf(r.Spec.ExpirationSeconds, c.cfg.Duration), c.Now())
		}
		if err != nil {
			return controller.Result{}, fmt.Errorf("error auto signing csr: %w", err)
		}
	}
	if _, err := c.writes.UpdateStatus(ctx, r); err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, fmt.Errorf("error updating signature for csr: %w", err)
	}
	return controller.Result{}, nil
}

// waits reports whether a request is approved and nothing has come of it yet.
func waits(s *certificatesv1.CertificateSigningRequestStatus) bool {
	return certificates.Has(s, certificatesv1.CertificateApproved) &&
		!certificates.Has(s, certificatesv1.CertificateDenied) &&
		!certificates.Has(s, certificatesv1.CertificateFailed) && len(s.Certificate) == 0
}
