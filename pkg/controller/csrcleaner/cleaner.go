// Package csrcleaner deletes CertificateSigningRequests that are over: who asked has had the time to read the answer.
package csrcleaner

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	certificatesclient "bonsai/pkg/apiclient/certificates"
	"bonsai/pkg/controller"
)

// How long requests stay
// (https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#request-signing-process).
const (
	pendingExpiration = 24 * time.Hour
	settledExpiration = time.Hour
)

type request = certificatesv1.CertificateSigningRequest

// New returns the controller; its cache fills when d.Informers run.
func New(d controller.Deps) (*controller.Cleaner[*request], error) {
	return controller.NewCleaner(d, controller.CleanerConfig[*request]{
		Name: "csrcleaner", Workers: d.Workers,
		Objects: controller.InformerFor(d.Informers, certificatesclient.CertificateSigningRequests),
		Writes:  certificatesclient.CertificateSigningRequests(d.Client),
		Over:    over,
	})
}

// over returns when a request is over. One that is approved and not signed waits for its signer.
func over(r *request) (at time.Time, ends bool) {
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
