package remote

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/certificates"
)

// CreateCertificateRequest makes a CertificateSigningRequest and returns what was stored.
func (a *API) CreateCertificateRequest(ctx context.Context, r *certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequest, error) {
	return certificates.CertificateSigningRequests(a.api).Create(ctx, r)
}

// CertificateRequest reads a CertificateSigningRequest.
func (a *API) CertificateRequest(ctx context.Context, name string) (*certificatesv1.CertificateSigningRequest, error) {
	return certificates.CertificateSigningRequests(a.api).Get(ctx, "", name)
}

// CertificateRequests lists and watches the CertificateSigningRequest of that name.
func (a *API) CertificateRequests(name string) cache.ListerWatcher {
	return certificates.CertificateSigningRequests(a.api).ListWatch(apiclient.Selection{Fields: "metadata.name=" + name, Newest: true})
}
