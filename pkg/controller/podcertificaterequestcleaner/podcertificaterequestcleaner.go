// Package podcertificaterequestcleaner deletes PodCertificateRequests 15 minutes after they were created. By then the
// kubelet has read the answer; if there is none, it asks again.
package podcertificaterequestcleaner

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	certificatesclient "bonsai/pkg/apiclient/certificates"
	"bonsai/pkg/controller"
)

// expiration is how long requests stay
// (https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#pod-certificate-requests).
const expiration = 15 * time.Minute

type request = certificatesv1.PodCertificateRequest

// New returns the controller; its cache fills when d.Informers run.
func New(d controller.Deps) (*controller.Cleaner[*request], error) {
	return controller.NewCleaner(d, controller.CleanerConfig[*request]{
		Name: "podcertificaterequestcleaner", Workers: d.Workers,
		Objects: controller.InformerFor(d.Informers, certificatesclient.PodCertificateRequests),
		Writes:  certificatesclient.PodCertificateRequests(d.Client),
		Over:    func(r *request) (time.Time, bool) { return r.CreationTimestamp.Add(expiration), true },
	})
}
