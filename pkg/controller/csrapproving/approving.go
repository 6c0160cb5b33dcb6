// Package csrapproving approves requests for kubelets' client certificates, of those who may have them without being
// asked for.
package csrapproving

import (
	"context"
	"crypto/x509"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/api/certificates"
	"bonsai/pkg/apiclient"
	certificatesclient "bonsai/pkg/apiclient/certificates"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
)

// Controller reconciles CertificateSigningRequests.
type Controller struct {
	controller.Deps
	nodes    *controller.Informer[*corev1.Node]
	requests *controller.Informer[*certificatesv1.CertificateSigningRequest]
	writes   *apiclient.Resource[*certificatesv1.CertificateSigningRequest]
	reviews  *apiclient.Resource[*authorizationv1.SubjectAccessReview]
	loop     *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{
		Deps: d, writes: certificatesclient.CertificateSigningRequests(d.Client),
		nodes:    controller.InformerFor(d.Informers, core.Nodes),
		requests: controller.InformerFor(d.Informers, certificatesclient.CertificateSigningRequests),
		reviews: apiclient.NewResource(d.Client, authorizationv1.SchemeGroupVersion, "subjectaccessreviews",
			&authorizationv1.SubjectAccessReview{}),
	}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "certificate_approving", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.Reconcile)
	return c, controller.WatchKeys(c.loop, c.requests)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// kind is a kind of request that is approved without a person: of those who may create the subresource of that name.
type kind struct{ subresource, message string }

// kindsOf returns the kinds that a request is of, none for most. A bootstrap token is no node's identity: who is not
// the node itself gets no certificate for the name of a Service.
func kindsOf(s *certificatesv1.CertificateSigningRequestSpec, r *x509.CertificateRequest) []kind {
	if s.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName ||
		certificates.CheckKubeletClient(r, s.Usages) != nil {
		return nil
	}
	node, first := kind{"selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."},
		kind{"nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."}
	if s.Username == r.Subject.CommonName {
		return []kind{node, first}
	}
	if name, err := certificates.NodeName(r); err != nil || certificates.IsServiceName(name) {
		return nil
	}
	return []kind{first}
}

// Reconcile approves one request if it is of a kind that its author may have approved.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	r, ok := c.requests.Get(key)
	if !ok || len(r.Status.Certificate) > 0 || certificates.Has(&r.Status, certificatesv1.CertificateApproved) ||
		certificates.Has(&r.Status, certificatesv1.CertificateDenied) {
		return controller.Result{}, nil
	}
	asked, err := certificates.ParseRequest(r.Spec.Request)
	if err != nil {
		return controller.Result{}, controller.TerminalError(fmt.Errorf("unable to parse csr %q: %w", r.Name, err))
	}
	kinds := kindsOf(&r.Spec, asked)
	if len(kinds) > 0 && c.isTaken(&r.Spec, asked) {
		c.Log.Info("a client certificate for a node that exists is left for a person to approve", "request", r.Name,
			"user", r.Spec.Username, "subject", asked.Subject.CommonName)
		return controller.Result{Backoff: true}, nil // until the node is deleted
	}
	for _, k := range kinds {
		may, err := c.may(ctx, &r.Spec, k.subresource)
		if err != nil {
			return controller.Result{}, err
		}
		if may {
			r = r.DeepCopy()
			certificates.SetCondition(&r.Status, certificatesv1.CertificateApproved, "AutoApproved", k.message, c.Now())
			if _, err := c.writes.UpdateSub(ctx, r, "approval"); err != nil && !apierrors.IsNotFound(err) {
				return controller.Result{}, fmt.Errorf("error updating approval for csr: %w", err)
			}
			return controller.Result{}, nil
		}
	}
	// Whoever may not yet may be allowed to soon, and the request does not change by that.
	return controller.Result{Backoff: len(kinds) > 0}, nil
}

// isTaken reports whether somebody else asks for the certificate of a node that exists, whose pods' Secrets and tokens
// it would open. Kubelets renew with the certificate that they have.
func (c *Controller) isTaken(s *certificatesv1.CertificateSigningRequestSpec, r *x509.CertificateRequest) bool {
	name, err := certificates.NodeName(r)
	if err != nil || s.Username == r.Subject.CommonName {
		return false
	}
	_, exists := c.nodes.Get(controller.Key{Name: name})
	return exists
}

// may asks whether the author of a request may create a subresource of requests.
func (c *Controller) may(ctx context.Context, s *certificatesv1.CertificateSigningRequestSpec,
	subresource string) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for k, v := range s.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	answer, err := c.reviews.Create(ctx,
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: s.Username, UID: s.UID, Groups: s.Groups, Extra: extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Verb: "create", Version: "*",
				Subresource: subresource,
			},
		}})
	if err != nil {
		return false, fmt.Errorf("asking whether %q may have a client certificate: %w", s.Username, err)
	}
	return answer.Status.Allowed, nil
}
