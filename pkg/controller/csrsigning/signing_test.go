package csrsigning

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// authority is one whose certificate holds until the given time.
func authority(t *testing.T, until time.Time) *Authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, NotBefore: now.Add(-time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{cert, key}
}

func asked(t *testing.T, r x509.CertificateRequest) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &r, newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func approved(request []byte, signer string,
	usages ...certificatesv1.KeyUsage) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "r", ResourceVersion: "5"},
		Spec:       certificatesv1.CertificateSigningRequestSpec{SignerName: signer, Request: request, Usages: usages},
		Status: certificatesv1.CertificateSigningRequestStatus{
			Conditions: []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateApproved, Status: "True"}}},
	}
}

// TestReconcile: what becomes of requests; the messages are those of a real controller manager v1.36.3.
func TestReconcile(t *testing.T) {
	t.Parallel()
	const client, kubelet, serving = certificatesv1.KubeAPIServerClientSignerName,
		certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName
	const sign, auth, server, encipher = certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth,
		certificatesv1.UsageServerAuth, certificatesv1.UsageKeyEncipherment
	node := pkix.Name{CommonName: "system:node:n", Organization: []string{"system:nodes"}}
	bob := asked(t, x509.CertificateRequest{Subject: pkix.Name{CommonName: "bob"}})
	plain := asked(t, x509.CertificateRequest{Subject: node})
	named := asked(t, x509.CertificateRequest{Subject: node, DNSNames: []string{"n"},
		IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}})
	mailed := asked(t, x509.CertificateRequest{Subject: node, EmailAddresses: []string{"a@b.c"}})
	with := func(r *certificatesv1.CertificateSigningRequest,
		change func(*certificatesv1.CertificateSigningRequestStatus)) *certificatesv1.CertificateSigningRequest {
		change(&r.Status)
		return r
	}
	add := func(t certificatesv1.RequestConditionType) func(*certificatesv1.CertificateSigningRequestStatus) {
		return func(s *certificatesv1.CertificateSigningRequestStatus) {
			s.Conditions = append(s.Conditions,
				certificatesv1.CertificateSigningRequestCondition{Type: t, Status: "True"})
		}
	}
	ca := authority(t, now.Add(10*365*24*time.Hour))
	for name, c := range map[string]struct {
		request *certificatesv1.CertificateSigningRequest
		failed  string // the condition's message; "-" for no write at all
	}{
		"a client":             {approved(bob, client, sign, auth), ""},
		"a client, all usages": {approved(bob, client, sign, auth, encipher), ""},
		"a client that serves": {approved(bob, client, sign, auth, server),
			"invalid usage for client certificate: server auth"},
		"a client without auth": {approved(bob, client, sign),
			"missing required usage for client certificate: client auth"},
		"a kubelet":             {approved(plain, kubelet, sign, auth), ""},
		"a kubelet, all usages": {approved(plain, kubelet, encipher, sign, auth), ""},
		"a kubelet that serves": {approved(plain, kubelet, sign, auth, server),
			"usages did not match [client auth digital signature key encipherment]"},
		"a kubelet, too few usages": {approved(plain, kubelet, auth),
			"usages did not match [client auth digital signature key encipherment]"},
		"no kubelet":               {approved(bob, kubelet, sign, auth), "subject organization is not system:nodes"},
		"a kubelet with names":     {approved(named, kubelet, sign, auth), "DNS subjectAltNames are not allowed"},
		"a kubelet with a mailbox": {approved(mailed, kubelet, sign, auth), "Email subjectAltNames are not allowed"},
		"a kubelet's server":       {approved(named, serving, sign, server), ""},
		"a server without names":   {approved(plain, serving, sign, server), "DNS or IP subjectAltName is required"},
		"a server that is a client": {approved(named, serving, sign, auth),
			"usages did not match [digital signature key encipherment server auth]"},
		"no kubelet's server": {approved(bob, serving, sign, server),
			"subject organization is not system:nodes"},
		"another signer":             {approved(bob, "example.com/x", sign), "-"},
		"a signer without authority": {approved(bob, "kubernetes.io/legacy-unknown", sign), "-"},
		"denied, too": {with(approved(bob, client, sign, auth), add(certificatesv1.CertificateDenied)),
			"-"},
		"failed before": {with(approved(bob, client, sign, auth), add(certificatesv1.CertificateFailed)),
			"-"},
		"issued before": {with(approved(bob, client, sign, auth),
			func(s *certificatesv1.CertificateSigningRequestStatus) {
				s.Certificate = []byte("x")
			}), "-"},
		"not approved": {with(approved(bob, client, sign, auth),
			func(s *certificatesv1.CertificateSigningRequestStatus) {
				s.Conditions = nil
			}), "-"},
	} {
		fake := &controllertest.Fake{}
		load := func() (*Authority, error) { return ca, nil }
		ctl, err := New(fake.Deps(t, now),
			Config{Duration: time.Hour,
				Authorities: map[string]func() (*Authority, error){client: load, kubelet: load, serving: load}})
		if err != nil {
			t.Fatal(err)
		}
		controllertest.Put(t, ctl.requests, c.request)
		if _, err := ctl.Reconcile(t.Context(), controller.Key{Name: "r"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.failed == "-" {
			if len(fake.Calls()) > 0 {
				t.Errorf("%s: %v", name, fake.Names())
			}
			continue
		}
		if got := fake.Names(); !slices.Equal(got,
			[]string{"PUT /apis/certificates.k8s.io/v1/certificatesigningrequests/r/status"}) {
			t.Fatalf("%s: %v", name, got)
		}
		s := fake.Calls()[0].Object.(*certificatesv1.CertificateSigningRequest).Status
		last := s.Conditions[len(s.Conditions)-1]
		if c.failed != "" && (last.Type != certificatesv1.CertificateFailed ||
			last.Reason != "SignerValidationFailure" || last.Message != c.failed || len(s.Certificate) > 0) {
			t.Errorf("%s: %+v", name, s)
		}
		if c.failed == "" && (len(s.Conditions) != 1 || len(s.Certificate) == 0) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestSigned: what is in a certificate.
func TestSigned(t *testing.T) {
	t.Parallel()
	ca := authority(t, now.Add(100*24*time.Hour))
	r, err := x509.ParseCertificateRequest(func() []byte {
		b, _ := pem.Decode(asked(t,
			x509.CertificateRequest{Subject: pkix.Name{CommonName: "c", Organization: []string{"o"}},
				DNSNames: []string{"d"}}))
		return b.Bytes
	}())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ lifetime, before, after time.Duration }{
		{10 * time.Minute, 5 * time.Minute, 10 * time.Minute},
		{7 * time.Hour, 5 * time.Minute, 7 * time.Hour},
		{8 * time.Hour, 5 * time.Minute, 8*time.Hour - 5*time.Minute},
		{1000 * 24 * time.Hour, 5 * time.Minute, 100 * 24 * time.Hour},
	} {
		text, err := ca.sign(r, []certificatesv1.KeyUsage{"digital signature", "client auth", "s/mime"}, c.lifetime,
			now)
		if err != nil {
			t.Fatal(err)
		}
		block, rest := pem.Decode(text)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil || len(rest) > 0 {
			t.Fatal(err, rest)
		}
		if !cert.NotBefore.Equal(now.Add(-c.before)) || !cert.NotAfter.Equal(now.Add(c.after)) {
			t.Errorf("%v: from %v to %v", c.lifetime, cert.NotBefore, cert.NotAfter)
		}
		if cert.Subject.String() != "CN=c,O=o" || !slices.Equal(cert.DNSNames, []string{"d"}) || cert.IsCA ||
			!cert.BasicConstraintsValid || cert.KeyUsage != x509.KeyUsageDigitalSignature ||
			!slices.Equal(cert.ExtKeyUsage,
				[]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageEmailProtection}) ||
			cert.CheckSignatureFrom(ca.cert) != nil {
			t.Errorf("%+v", cert)
		}
	}
	if _, err := authority(t, now).sign(r, nil, time.Hour, now); err == nil {
		t.Error("an authority that is over signs")
	}
	for _, c := range []struct {
		asked *int32
		want  time.Duration
	}{{nil, time.Hour}, {new(int32(1)), 10 * time.Minute}, {new(int32(1800)), 30 * time.Minute},
		{new(int32(1 << 30)), time.Hour}} {
		if got := lifetimeOf(c.asked, time.Hour); got != c.want {
			t.Errorf("%v: %v", c.asked, got)
		}
	}
}

// TestTrouble: what is tried again, and what is not.
func TestTrouble(t *testing.T) {
	t.Parallel()
	const client = certificatesv1.KubeAPIServerClientSignerName
	var refused error
	fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
		return call.Object, refused
	}}
	ca, err := authority(t, now.Add(time.Hour)), error(nil)
	ctl, nerr := New(fake.Deps(t, now),
		Config{Duration: time.Hour,
			Authorities: map[string]func() (*Authority, error){client: func() (*Authority, error) {
				return ca, err
			}}})
	if nerr != nil {
		t.Fatal(nerr)
	}
	key := controller.Key{Name: "r"}
	controllertest.Put(t, ctl.requests, approved(asked(t, x509.CertificateRequest{}), client, "client auth"))
	refused = apierrors.NewConflict(schema.GroupResource{}, "r", nil)
	if _, err := ctl.Reconcile(t.Context(), key); !apierrors.IsConflict(err) {
		t.Errorf("somebody else wrote: %v", err)
	}
	err = os.ErrNotExist
	if _, got := ctl.Reconcile(t.Context(), key); got == nil || len(fake.Calls()) != 1 {
		t.Errorf("no authority: %v, %v", got, fake.Names())
	}
	if _, err := New(fake.Deps(t, now), ctl.cfg); err == nil {
		t.Error("started without its authority")
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none"), "none"); err == nil {
		t.Error("read an authority that is not there")
	}
	controllertest.Put(t, ctl.requests, approved([]byte("x"), client, "client auth"))
	if _, err := ctl.Reconcile(t.Context(), key); err == nil ||
		fmt.Sprint(err) != `unable to parse csr "r": PEM block type must be CERTIFICATE REQUEST` {
		t.Errorf("no request: %v", err)
	}
}
