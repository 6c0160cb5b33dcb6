package kubeclient

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/certificates"
)

// CreateCertificateRequest makes a CertificateSigningRequest and returns what was stored.
func (c *Client) CreateCertificateRequest(ctx context.Context,
	r *certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequest, error) {
	return certificates.CertificateSigningRequests(c.api).Create(ctx, r)
}

// CertificateRequest reads a CertificateSigningRequest.
func (c *Client) CertificateRequest(ctx context.Context, name string) (*certificatesv1.CertificateSigningRequest,
	error) {
	return certificates.CertificateSigningRequests(c.api).Get(ctx, "", name)
}

// CertificateRequests lists and watches the CertificateSigningRequest of that name.
func (c *Client) CertificateRequests(name string) cache.ListerWatcher {
	return certificates.CertificateSigningRequests(c.api).ListWatch(apiclient.Selection{Fields: "metadata.name=" + name,
		Newest: true})
}

// CreatePodCertificateRequest makes a PodCertificateRequest and returns what was stored.
func (c *Client) CreatePodCertificateRequest(ctx context.Context,
	r *certificatesv1.PodCertificateRequest) (*certificatesv1.PodCertificateRequest, error) {
	return certificates.PodCertificateRequests(c.api).Create(ctx, r)
}

// PodCertificateRequest lists and watches the PodCertificateRequest of that name, of a pod on a node.
func (c *Client) PodCertificateRequest(namespace, name, node string) cache.ListerWatcher {
	return certificates.PodCertificateRequests(c.api).ListWatch(apiclient.Selection{Namespace: namespace,
		Fields: "metadata.name=" + name + ",spec.nodeName=" + node, Newest: true})
}

// TrustBundles lists and watches all ClusterTrustBundles.
func (c *Client) TrustBundles() cache.ListerWatcher {
	return certificates.ClusterTrustBundles(c.api).ListWatch(apiclient.Selection{Newest: true})
}
