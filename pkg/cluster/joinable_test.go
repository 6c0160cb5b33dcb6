package cluster

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/bootstraptoken"
	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/plan"
)

func joinableConfig() plan.Config {
	c := plan.Default("/data", "/bin")
	c.AdvertiseAddress = netip.MustParseAddr("192.0.2.1")
	return c
}

// TestJoinable: what a cluster has for other machines it has only if it is told by which address they reach it.
func TestJoinable(t *testing.T) {
	t.Parallel()
	with, without := joinableConfig(), plan.Default("/data", "/bin")
	door := netip.MustParseAddrPort("192.0.2.1:6443")
	for _, c := range []plan.Config{with, without} {
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
		all := ""
		for _, p := range everyProcess(c) {
			all += strings.Join(p.Argv, " ") + " "
		}
		for what, has := range map[string]bool{
			"a door":     slices.Contains(c.Listening(), door),
			"the add-on": c.HasAddon("join"),
			"token auth": strings.Contains(all, "--enable-bootstrap-token-auth=true"),
			"signer, cleaner": strings.Contains(all,
				"--controllers=*,bootstrap-signer-controller,token-cleaner-controller"),
			"ways to machines": !strings.Contains(network.HostRules(c),
				`" ip daddr { 10.77.0.0/24, 10.244.0.0/16, 10.96.0.0/16 } drop`),
		} {
			if has != c.IsJoinable() {
				t.Errorf("joinable %t, %s %t", c.IsJoinable(), what, has)
			}
		}
	}
	for address, change := range map[string]func(*plan.Config){
		"127.0.0.1": nil, "0.0.0.0": nil, "2001:db8::1": nil, "10.244.3.4": nil, "10.77.0.1": nil, "224.0.0.1": nil,
		"192.0.2.1": func(c *plan.Config) {
			c.Egress = false
		}, "192.0.2.2": func(c *plan.Config) { c.IPFamily = plan.Dual },
	} {
		c := joinableConfig()
		c.AdvertiseAddress = netip.MustParseAddr(address)
		if change != nil {
			change(&c)
		}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--advertise-address") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestPrintTokens(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	old := bootstraptoken.Token{ID: "bbbbbb", Secret: "0123456789abcdef"}.Object("", now.Add(-time.Hour))
	delete(old.Data, bootstraptoken.KeySigning)
	delete(old.Data, bootstraptoken.KeyGroups)
	var out bytes.Buffer
	if err := printTokens(&out,
		[]*corev1.Secret{old, bootstraptoken.Token{ID: "cccccc", Secret: "0123456789abcdef"}.Object("", time.Time{}),
			bootstraptoken.Token{ID: "aaaaaa", Secret: "0123456789abcdef"}.Object("mine", now.Add(90*time.Minute))},
		now); err != nil {
		t.Fatal(err)
	}
	want := `TOKEN                     TTL         EXPIRES                USAGES                   DESCRIPTION   EXTRA GROUPS
aaaaaa.0123456789abcdef   1h30m0s     2026-11-23T04:30:00Z   authentication,signing   mine          system:bootstrappers:kubeadm:default-node-token
bbbbbb.0123456789abcdef   <invalid>   2026-11-23T02:00:00Z   authentication           <none>        <none>
cccccc.0123456789abcdef   <forever>   <never>                authentication,signing   <none>        system:bootstrappers:kubeadm:default-node-token
`
	if out.String() != want {
		t.Errorf("%s\nnot\n%s", &out, want)
	}
}

func TestMayServe(t *testing.T) {
	t.Parallel()
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
		if err := mayServe(joinableConfig(), spec, asked, nodes, host); (err == nil) != (change == nil) {
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
		if err := mayServe(joinableConfig(), spec, asked, nodes[1:], host); err == nil ||
			err.Error() != "the name "+name+" is the cluster's" {
			t.Errorf("a node called %s: %v", name, err)
		}
	}
	nodes[1].Name, nodes[2].Status.Addresses[0].Address = "far", "192.0.2.7"
	spec, asked := good()
	if err := mayServe(joinableConfig(), spec, asked, nodes, host); err == nil {
		t.Error("an address that two nodes have was approved")
	}
}
