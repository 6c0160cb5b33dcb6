package pki

import (
	"bytes"
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestPKI: every identity verifies against its own authority, for what it is for, and against no other.
func TestPKI(t *testing.T) {
	t.Parallel()
	c, now := plantest.Config(t), time.Now()
	if err := Make(c, now); err != nil {
		t.Fatal(err)
	}
	pools := map[string]*x509.CertPool{}
	for _, a := range authorities {
		ca, err := ReadCertificate(c.Layout().PKI(a[0] + ".crt"))
		if err != nil {
			t.Fatal(err)
		}
		pools[a[0]] = x509.NewCertPool()
		pools[a[0]].AddCert(ca)
	}
	for _, row := range Certificates(c) {
		cert, err := ReadCertificate(c.Layout().PKI(row.Name + ".crt"))
		if err != nil {
			t.Fatal(err)
		}
		if cert.Subject.CommonName != row.User || len(cert.Subject.Organization) != len(row.groups) {
			t.Errorf("%s: subject %s", row.Name, cert.Subject)
		}
		for name, pool := range pools {
			for usage, want := range map[x509.ExtKeyUsage]bool{x509.ExtKeyUsageServerAuth: row.Server,
				x509.ExtKeyUsageClientAuth: row.client} {
				_, err := cert.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now,
					KeyUsages: []x509.ExtKeyUsage{usage}})
				if got := err == nil; got != (want && name == row.ca) {
					t.Errorf("%s against %s for usage %d: %v", row.Name, name, usage, err)
				}
			}
		}
		for _, ip := range row.IPs {
			if err := cert.VerifyHostname(ip.String()); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestPKIRenewal: what is good stays to the byte; what is about to expire, or has another subject, is recreated under
// the same authority; keys are for root's eyes only.
func TestPKIRenewal(t *testing.T) {
	t.Parallel()
	c, now := plantest.Config(t), time.Now()
	read := func(name string) []byte {
		data, err := os.ReadFile(c.Layout().PKI(name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if err := Make(c, now); err != nil {
		t.Fatal(err)
	}
	admin, ca, sa := read("admin.crt"), read("ca.crt"), read("sa.key")
	if err := Make(c, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(admin, read("admin.crt")) {
		t.Error("a good certificate was replaced")
	}
	now = now.Add(certLifetime - renewBefore + time.Hour)
	if err := Make(c, now); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(admin, read("admin.crt")) || !bytes.Equal(ca, read("ca.crt")) || !bytes.Equal(sa, read("sa.key")) {
		t.Error("an expiring certificate must be recreated, and nothing else")
	}
	c.AdvertiseAddress = netip.MustParseAddr("192.0.2.1")
	if err := Make(c, now); err != nil {
		t.Fatal(err)
	}
	if cert, err := ReadCertificate(c.Layout().PKI("apiserver.crt")); err != nil ||
		cert.VerifyHostname("192.0.2.1") != nil {
		t.Error("the API server has a certificate for where it was reached in former times:", err)
	}
	stranger := Certificate{Name: "apiserver-kubelet-client", ca: "ca", User: "kube-apiserver-kubelet-client",
		groups: []string{"system:masters"}, client: true}
	if err := stranger.make(c.Layout().At("pki"), now); err != nil {
		t.Fatal(err)
	}
	if err := Make(c, now); err != nil {
		t.Fatal(err)
	}
	if cert, err := ReadCertificate(c.Layout().PKI("apiserver-kubelet-client.crt")); err != nil ||
		len(cert.Subject.Organization) > 0 {
		t.Error("a certificate with powers of former times was kept:", err)
	}
	keys, err := filepath.Glob(c.Layout().PKI("*.key"))
	if err != nil || len(keys) < 10 {
		t.Fatal(keys, err)
	}
	for _, key := range keys {
		if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", key, info.Mode(), err)
		}
	}
}

// TestClockPutBack: a clock that is put back by an hour breaks nothing, and one that is put back to before the
// cluster was made is named.
func TestClockPutBack(t *testing.T) {
	t.Parallel()
	c, now := plantest.Config(t), time.Now()
	for _, by := range []time.Duration{0, time.Hour} {
		if err := Make(c, now.Add(-by)); err != nil {
			t.Errorf("put back by %s: %v", by, err)
		}
	}
	if err := Make(c, now.Add(-2*time.Hour)); err == nil || !strings.Contains(err.Error(), "set the clock") {
		t.Errorf("certificates of the future: %v", err)
	}
}

// TestServerNames: the names that no node of another machine may have are those of the cluster's own servers.
func TestServerNames(t *testing.T) {
	t.Parallel()
	names := ServerNames(plan.Default("/data", "/bin"))
	for _, want := range []string{"kubernetes", "kubernetes.default", "localhost", "n1"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %q in %q", want, names)
		}
	}
}

// TestAuthorityRenewal: an authority that expires soon keeps its key, so that what it has signed stays good under its
// new certificate; what another authority has signed is made anew.
func TestAuthorityRenewal(t *testing.T) {
	t.Parallel()
	c, now := plantest.Config(t), time.Now()
	if err := Make(c, now); err != nil {
		t.Fatal(err)
	}
	read := func(name string) *x509.Certificate {
		t.Helper()
		cert, err := ReadCertificate(c.Layout().PKI(name))
		if err != nil {
			t.Fatal(err)
		}
		return cert
	}
	before := read("ca.crt")
	// The certificates of a start eleven months ago are still good when the authority is renewed.
	if err := Make(c, now.Add(caLifetime-11*30*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	admin := read("admin.crt")
	if err := Make(c, now.Add(caLifetime-renewBefore+time.Hour)); err != nil {
		t.Fatal(err)
	}
	after := read("ca.crt")
	if after.Equal(before) || !bytes.Equal(after.RawSubjectPublicKeyInfo, before.RawSubjectPublicKeyInfo) {
		t.Error("an authority that expires soon must get a new certificate for the same key")
	}
	for _, leaf := range []*x509.Certificate{admin, read("apiserver.crt")} {
		if err := leaf.CheckSignatureFrom(after); err != nil {
			t.Errorf("%s: %v", leaf.Subject, err)
		}
	}
	for _, lost := range []string{"ca.crt", "ca.key"} {
		if err := os.Remove(c.Layout().PKI(lost)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Make(c, now.Add(caLifetime-renewBefore+2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := read("apiserver.crt").CheckSignatureFrom(read("ca.crt")); err != nil {
		t.Error("a certificate of an authority that is no more was kept:", err)
	}
}
