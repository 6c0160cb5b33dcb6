package join

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/netip"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/cluster/plan"
)

// TestMayServe: a node gets a certificate for itself, and for nothing that belongs to others or to the cluster.
func TestMayServe(t *testing.T) {
	t.Parallel()
	c := plan.Default("/data", "/bin")
	c.AdvertiseAddress = netip.MustParseAddr("192.0.2.1")
	servers := []string{"kubernetes", "kubernetes.default", "localhost", "n1"}
	node := func(name, address string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: corev1.NodeStatus{
				Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address},
					{Type: corev1.NodeHostName, Address: name}}}}
	}
	nodes := []*corev1.Node{node("n1", "10.77.0.11"), node("far", "192.0.2.7"), node("other", "192.0.2.8")}
	nodes[1].Status.Addresses = append(nodes[1].Status.Addresses,
		corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "192.0.2.77"})
	host := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.77")}
	good := func() (*certificatesv1.CertificateSigningRequestSpec, *x509.CertificateRequest) {
		return &certificatesv1.CertificateSigningRequestSpec{Username: "system:node:far",
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth,
					certificatesv1.UsageDigitalSignature}},
			&x509.CertificateRequest{
				Subject:  pkix.Name{CommonName: "system:node:far", Organization: []string{"system:nodes"}},
				DNSNames: []string{"far"}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 7)}}
	}
	for name, change := range map[string]func(*certificatesv1.CertificateSigningRequestSpec, *x509.CertificateRequest){
		"": nil,
		"another's name": func(_ *certificatesv1.CertificateSigningRequestSpec, r *x509.CertificateRequest) {
			r.DNSNames = []string{"other"}
		},
		"the API server's name": func(_ *certificatesv1.CertificateSigningRequestSpec, r *x509.CertificateRequest) {
			r.DNSNames = append(r.DNSNames, "kubernetes")
		},
		"another's address": func(_ *certificatesv1.CertificateSigningRequestSpec, r *x509.CertificateRequest) {
			r.IPAddresses[0] = net.IPv4(192, 0, 2, 8)
		},
		"nobody's address": func(_ *certificatesv1.CertificateSigningRequestSpec, r *x509.CertificateRequest) {
			r.IPAddresses[0] = net.IPv4(192, 0, 2, 9)
		},
		"the API server's": func(_ *certificatesv1.CertificateSigningRequestSpec, r *x509.CertificateRequest) {
			r.IPAddresses[0] = net.IPv4(192, 0, 2, 1)
		},
		"an address of the host": func(_ *certificatesv1.CertificateSigningRequestSpec, r *x509.CertificateRequest) {
			r.IPAddresses[0] = net.IPv4(192, 0, 2, 77)
		},
		"a service's": func(_ *certificatesv1.CertificateSigningRequestSpec, r *x509.CertificateRequest) {
			r.IPAddresses[0] = net.IPv4(10, 96, 0, 1)
		},
		"asked by another": func(s *certificatesv1.CertificateSigningRequestSpec, _ *x509.CertificateRequest) {
			s.Username = "system:node:other"
		},
		"not there": func(s *certificatesv1.CertificateSigningRequestSpec, r *x509.CertificateRequest) {
			s.Username, r.Subject.CommonName = "system:node:gone", "system:node:gone"
		},
		"as a client": func(s *certificatesv1.CertificateSigningRequestSpec, _ *x509.CertificateRequest) {
			s.Usages = append(s.Usages, certificatesv1.UsageClientAuth)
		},
	} {
		spec, asked := good()
		if change != nil {
			change(spec, asked)
		}
		if err := mayServe(c, servers, spec, asked, nodes, host); (err == nil) != (change == nil) {
			t.Errorf("%q: %v", name, err)
		}
	}
	// whoever joins chooses it
	for _, name := range []string{"kubernetes", "kubernetes.default", "localhost", "n1", "hook.prod.svc",
		"hook.prod.svc.cluster.local", "1-2-3-4.prod.pod.cluster.local"} {
		nodes[1].Name = name
		spec, asked := good()
		spec.Username, asked.Subject.CommonName, asked.DNSNames = "system:node:"+name, "system:node:"+name,
			[]string{name}
		if err := mayServe(c, servers, spec, asked, nodes[1:], host); err == nil ||
			err.Error() != "the name "+name+" is the cluster's" {
			t.Errorf("a node called %s: %v", name, err)
		}
	}
	nodes[1].Name, nodes[2].Status.Addresses[0].Address = "far", "192.0.2.7"
	spec, asked := good()
	if err := mayServe(c, servers, spec, asked, nodes, host); err == nil {
		t.Error("an address that two nodes have was approved")
	}
}
