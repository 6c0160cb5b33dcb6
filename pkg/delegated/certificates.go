package delegated

import (
	"crypto/x509"
	"fmt"
	"net/http"

	authnv1 "k8s.io/api/authentication/v1"

	"bonsai/pkg/authorities"
)

// Certificates authenticates clients by certificates: the common name is the user, the organizations are its groups.
// The TLS server must request client certificates, without verifying them.
type Certificates struct{ Roots authorities.Source }

var _ Authenticator = Certificates{}

// Authenticate implements Authenticator. Without roots it knows no user.
func (c Certificates) Authenticate(r *http.Request) (authnv1.UserInfo, bool, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return authnv1.UserInfo{}, false, nil
	}
	roots := c.Roots.Bundle().Pool
	if roots == nil {
		return authnv1.UserInfo{}, false, nil
	}
	leaf, between := r.TLS.PeerCertificates[0], x509.NewCertPool()
	for _, cert := range r.TLS.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	if _, err := leaf.Verify(
		x509.VerifyOptions{Roots: roots, Intermediates: between,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return authnv1.UserInfo{}, false,
			fmt.Errorf("verify the client certificate of %q: %w", leaf.Subject.CommonName, err)
	}
	if leaf.Subject.CommonName == "" {
		return authnv1.UserInfo{}, false, nil
	}
	return authnv1.UserInfo{Username: leaf.Subject.CommonName,
		Groups: append(append([]string{}, leaf.Subject.Organization...), "system:authenticated")}, true, nil
}
