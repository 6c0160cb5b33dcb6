package certificate

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// subject is who a node's kubelet is.
func subject(node string) pkix.Name {
	return pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}
}

// Client is what the client certificate of a node's kubelet says.
func Client(node string) *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: subject(node)}
}

// Serving is what its serving certificate says: where the node is reached. It is nil while there is no address.
func Serving(node string, addresses []corev1.NodeAddress) *x509.CertificateRequest {
	t := &x509.CertificateRequest{Subject: subject(node)}
	for _, a := range addresses {
		switch a.Type {
		case corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS:
			if ip := net.ParseIP(a.Address); ip != nil { // a host without a name
				t.IPAddresses = append(t.IPAddresses, ip)
			} else if a.Address != "" && !slices.Contains(t.DNSNames, a.Address) {
				t.DNSNames = append(t.DNSNames, a.Address)
			}
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			if ip := net.ParseIP(a.Address); ip != nil {
				t.IPAddresses = append(t.IPAddresses, ip)
			}
		}
	}
	slices.Sort(t.DNSNames)
	slices.SortFunc(t.IPAddresses, func(a, b net.IP) int { return slices.Compare(a.To16(), b.To16()) })
	t.IPAddresses = slices.CompactFunc(t.IPAddresses, net.IP.Equal)
	if len(t.DNSNames)+len(t.IPAddresses) == 0 {
		return nil
	}
	return t
}

// satisfies: a certificate says all that template asks for. It may say more: an address that went needs no new
// certificate.
func satisfies(cert *x509.Certificate, template *x509.CertificateRequest) bool {
	return cert.Subject.CommonName == template.Subject.CommonName &&
		within(template.Subject.Organization, cert.Subject.Organization) &&
		within(template.DNSNames, cert.DNSNames) && !slices.ContainsFunc(template.IPAddresses, func(ip net.IP) bool {
		return !slices.ContainsFunc(cert.IPAddresses, ip.Equal)
	})
}

// same: two templates ask for the same.
func same(a, b *x509.CertificateRequest) bool {
	return a.Subject.String() == b.Subject.String() && slices.Equal(a.DNSNames, b.DNSNames) &&
		slices.EqualFunc(a.IPAddresses, b.IPAddresses, net.IP.Equal)
}

func within(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
