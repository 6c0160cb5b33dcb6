package certificates

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The group and the beginning of the user names of nodes.
const (
	nodesGroup = "system:nodes"
	nodePrefix = "system:node:"
)

// CheckSigner tells why one of Kubernetes' own signers does not sign a request
// (https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers); nil: it
// does.
func CheckSigner(signer string, r *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	switch signer {
	case certificatesv1.KubeAPIServerClientSignerName:
		return checkClient(usages)
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		return CheckKubeletClient(r, usages)
	case certificatesv1.KubeletServingSignerName:
		return checkKubeletServing(r, usages)
	case certificatesv1beta1.LegacyUnknownSignerName:
		return nil
	}
	return fmt.Errorf("unrecognized signerName: %q", signer)
}

func checkClient(usages []certificatesv1.KeyUsage) error {
	auth := false
	for _, u := range usages {
		switch u {
		case certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment:
		case certificatesv1.UsageClientAuth:
			auth = true
		default:
			return fmt.Errorf("invalid usage for client certificate: %s", u)
		}
	}
	if !auth {
		return fmt.Errorf("missing required usage for client certificate: %s", certificatesv1.UsageClientAuth)
	}
	return nil
}

// CheckKubeletClient tells why a request is not one for a kubelet's client certificate.
func CheckKubeletClient(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	switch {
	case !slices.Equal(r.Subject.Organization, []string{nodesGroup}):
		return errors.New("subject organization is not system:nodes")
	case len(r.DNSNames) > 0:
		return errors.New("DNS subjectAltNames are not allowed")
	case len(r.EmailAddresses) > 0:
		return errors.New("Email subjectAltNames are not allowed")
	case len(r.IPAddresses) > 0:
		return errors.New("IP subjectAltNames are not allowed")
	case len(r.URIs) > 0:
		return errors.New("URI subjectAltNames are not allowed")
	}
	if _, err := NodeName(r); err != nil {
		return err
	}
	return checkNodeUsages(usages, certificatesv1.UsageClientAuth)
}

// NodeName returns the name of the node that a request is for. The error says why its subject is no node's: nobody
// could sign for such a node, as none can be registered.
func NodeName(r *x509.CertificateRequest) (string, error) {
	name, ok := strings.CutPrefix(r.Subject.CommonName, nodePrefix)
	if !ok {
		return "", errors.New("subject common name does not begin with system:node:")
	}
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return "", fmt.Errorf("subject common name %q does not name a node: %s", r.Subject.CommonName,
			strings.Join(wrong, "; "))
	}
	return name, nil
}

// IsServiceName reports whether clients in the cluster could use a name for a Service, as "hook.prod.svc": who serves
// with a certificate for it is taken for the Service.
func IsServiceName(name string) bool {
	return strings.HasSuffix(name, ".svc") || strings.Contains(name, ".svc.")
}

func checkKubeletServing(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	switch {
	case !slices.Equal(r.Subject.Organization, []string{nodesGroup}):
		return errors.New("subject organization is not system:nodes")
	case len(r.DNSNames)+len(r.IPAddresses) == 0:
		return errors.New("DNS or IP subjectAltName is required")
	case len(r.EmailAddresses) > 0:
		return errors.New("Email subjectAltNames are not allowed")
	case len(r.URIs) > 0:
		return errors.New("URI subjectAltNames are not allowed")
	}
	if _, err := NodeName(r); err != nil {
		return err
	}
	return checkNodeUsages(usages, certificatesv1.UsageServerAuth)
}

// checkNodeUsages: a digital signature and auth must be asked for, and key encipherment may (keys that are no RSA keys
// cannot do it).
func checkNodeUsages(usages []certificatesv1.KeyUsage, auth certificatesv1.KeyUsage) error {
	all := []string{string(auth), string(certificatesv1.UsageDigitalSignature),
		string(certificatesv1.UsageKeyEncipherment)}
	slices.Sort(all)
	for _, u := range usages {
		if !slices.Contains(all, string(u)) {
			return fmt.Errorf("usages did not match %v", all)
		}
	}
	if !slices.Contains(usages, auth) || !slices.Contains(usages, certificatesv1.UsageDigitalSignature) {
		return fmt.Errorf("usages did not match %v", all)
	}
	return nil
}
