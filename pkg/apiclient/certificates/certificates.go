// Package certificates gives access to the kinds of certificates.k8s.io/v1 that components use.
package certificates

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"bonsai/pkg/apiclient"
)

// CertificateSigningRequests gives access to certificatesigningrequests.
func CertificateSigningRequests(c *apiclient.Client) *apiclient.Resource[*certificatesv1.CertificateSigningRequest] {
	return apiclient.NewResource(c, certificatesv1.SchemeGroupVersion, "certificatesigningrequests",
		&certificatesv1.CertificateSigningRequest{})
}

// PodCertificateRequests gives access to podcertificaterequests.
func PodCertificateRequests(c *apiclient.Client) *apiclient.Resource[*certificatesv1.PodCertificateRequest] {
	return apiclient.NewResource(c, certificatesv1.SchemeGroupVersion, "podcertificaterequests",
		&certificatesv1.PodCertificateRequest{})
}

// ClusterTrustBundles gives access to clustertrustbundles.
func ClusterTrustBundles(c *apiclient.Client) *apiclient.Resource[*certificatesv1.ClusterTrustBundle] {
	return apiclient.NewResource(c, certificatesv1.SchemeGroupVersion, "clustertrustbundles",
		&certificatesv1.ClusterTrustBundle{})
}
