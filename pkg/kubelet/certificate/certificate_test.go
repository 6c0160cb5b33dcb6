package certificate

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestRenewal: a certificate is renewed at its time and not before, the link leads to the newest, and a kubelet that is
// started again goes on with it (https://kubernetes.io/docs/tasks/tls/certificate-rotation/).
func TestRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, dir := newAuthority(t, 10*time.Hour), t.TempDir()
		var renewed atomic.Int32
		m, reg := running(t, a, dir, func() *x509.CertificateRequest { return Client("n") }, func() { renewed.Add(1) })
		if m.Current() != nil {
			t.Error("there is a certificate before there is one")
		}
		synctest.Wait()
		first := m.Current()
		if first == nil || first.Leaf.Subject.CommonName != "system:node:n" || renewed.Load() != 1 {
			t.Fatalf("%+v, renewed %d", first, renewed.Load())
		}
		time.Sleep(8*time.Hour - time.Minute)
		if m.Current() != first {
			t.Error("renewed too early")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		second := m.Current()
		if second == first || renewed.Load() != 2 || a.count() != 2 {
			t.Fatalf("not renewed: renewed %d, asked %d", renewed.Load(), a.count())
		}
		if n, ttl := value(t, reg, "kubelet_certificate_manager_server_rotation_seconds"),
			value(t, reg, "kubelet_certificate_manager_server_ttl_seconds"); n != 1 || ttl < 35930 || ttl > 35950 {
			t.Errorf("%v rotations, %v s left", n, ttl)
		}
		kept, err := Store{dir, "kubelet-server"}.current()
		if err != nil || !kept.Leaf.Equal(second.Leaf) {
			t.Errorf("kept %v, %v", kept, err)
		}
		if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 3 {
			t.Errorf("files %v", files)
		}
		again, _ := running(t, a, dir, func() *x509.CertificateRequest { return Client("n") }, nil)
		synctest.Wait()
		if again.Current() == nil || !again.Current().Leaf.Equal(second.Leaf) || a.count() != 2 {
			t.Errorf("asked %d times", a.count())
		}
	})
}

// TestClockPutRight: a machine without a clock of its own begins in the past. A certificate is renewed in time although
// the kubelet took that for the time.
func TestClockPutRight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t, 10*time.Hour)
		var behind atomic.Int64
		behind.Store(int64(1000 * time.Hour))
		m, err := NewManager(Config{Store: Store{t.TempDir(), "kubelet-client"},
			Signer: certificatesv1.KubeAPIServerClientKubeletSignerName, Usage: certificatesv1.UsageClientAuth,
			Template: func() *x509.CertificateRequest {
				return Client("n")
			}, Requests: func() (Requests, error) { return a, nil },
			Now: func() time.Time {
				return time.Now().Add(-time.Duration(behind.Load()))
			}, Random: func() float64 { return 0.5 }, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- m.Run(ctx) }()
		synctest.Wait()
		behind.Store(0)
		time.Sleep(8*time.Hour - time.Minute)
		if a.count() != 1 {
			t.Errorf("asked %d times before it was due", a.count())
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if a.count() != 2 {
			t.Errorf("asked %d times", a.count())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestShortLife: certificates that are due as soon as they are issued are not asked for without a pause.
func TestShortLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t, time.Millisecond)
		running(t, a, t.TempDir(), func() *x509.CertificateRequest { return Client("n") }, nil)
		time.Sleep(10*time.Second + time.Millisecond)
		if n := a.count(); n < 5 || n > 6 {
			t.Errorf("asked %d times in 10 s", n)
		}
	})
}

// TestExpired: a certificate is none once it has ended.
func TestExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t, time.Hour)
		a.decide = func(n int, r *request) *request {
			if n == 1 {
				return a.sign(r)
			}
			return nil
		}
		m, _ := running(t, a, t.TempDir(), func() *x509.CertificateRequest { return Client("n") }, nil)
		time.Sleep(59 * time.Minute)
		if m.Current() == nil {
			t.Error("gone before its end")
		}
		time.Sleep(time.Minute)
		if m.Current() != nil {
			t.Error("still used after its end")
		}
	})
}

// TestRefused: a refusal is tried again, less and less often, and counted.
func TestRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t, time.Hour)
		a.decide = func(n int, r *request) *request {
			if n <= 4 {
				return denied(r)
			}
			return a.sign(r)
		}
		m, reg := running(t, a, t.TempDir(), func() *x509.CertificateRequest { return Client("n") }, nil)
		time.Sleep(29 * time.Second) // the tries are at 0, 2, 6, 14 and 30 s
		if a.count() != 4 || m.Current() != nil {
			t.Errorf("asked %d times", a.count())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if a.count() != 5 || m.Current() == nil {
			t.Errorf("asked %d times", a.count())
		}
		if n := value(t, reg, "kubelet_server_expiration_renew_errors"); n != 4 {
			t.Errorf("%v failures counted", n)
		}
	})
}

// TestServingFollowsAddresses: new addresses are asked for at once, also while a request for the old ones waits; fewer
// are not.
func TestServingFollowsAddresses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t, time.Hour)
		waits := false
		a.decide = func(_ int, r *request) *request {
			if waits {
				return nil
			}
			return a.sign(r)
		}
		var addresses []corev1.NodeAddress
		m, _ := running(t, a, t.TempDir(), func() *x509.CertificateRequest { return Serving("n", addresses) }, nil)
		now := func(asked int, text string) {
			t.Helper()
			m.cfg.Changed.Notify()
			synctest.Wait()
			if a.count() != asked || asked > 0 && fmt.Sprint(a.last().DNSNames, a.last().IPAddresses) != text {
				t.Errorf("asked %d times", a.count())
			}
		}
		now(0, "")
		addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
			{Type: corev1.NodeHostName, Address: "h"}}
		now(1, "[h] [10.0.0.1]")
		time.Sleep(firstRetry)
		addresses = addresses[:1]
		now(1, "[h] [10.0.0.1]")
		waits = true
		addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeExternalDNS, Address: "x.example"},
			corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "2001:db8::1"})
		now(2, "[x.example] [10.0.0.1 2001:db8::1]")
		if m.Current() == nil {
			t.Error("the old certificate is not used while the new one is not there")
		}
		waits = false
		addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: "i.example"})
		now(3, "[i.example x.example] [10.0.0.1 2001:db8::1]")
		if m.Current().Leaf.VerifyHostname("i.example") != nil {
			t.Error("the new certificate is not used")
		}
	})
}

func TestServingTemplate(t *testing.T) {
	t.Parallel()
	if got := Serving("n", nil); got != nil {
		t.Errorf("without addresses: %+v", got)
	}
	got := Serving("n", []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
		{Type: corev1.NodeHostName, Address: "10.0.0.1"}, {Type: corev1.NodeInternalIP, Address: "x"}})
	if len(got.DNSNames) != 0 || len(got.IPAddresses) != 1 || !got.IPAddresses[0].Equal(net.ParseIP("10.0.0.1")) ||
		got.Subject.String() != "CN=system:node:n,O=system:nodes" {
		t.Errorf("%+v", got)
	}
}

// TestStoreIsNeverHalf: what a killed kubelet left is taken away, and rubbish does not become the certificate.
func TestStoreIsNeverHalf(t *testing.T) {
	t.Parallel()
	s := Store{t.TempDir(), "kubelet-client"}
	if err := os.Symlink("nowhere", filepath.Join(s.Dir, "kubelet-client-updated.pem")); err != nil {
		t.Fatal(err)
	}
	if c, err := s.current(); c != nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := s.Update([]byte("x"), []byte("y"), time.Now()); err == nil {
		t.Error("rubbish was kept")
	}
	key, keyPEM, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM,
		time.Now()); err != nil {
		t.Fatal(err)
	}
	var c *tls.Certificate
	if c, err = s.current(); c == nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
}
