package certificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/kubelet/notify"
)

type request = certificatesv1.CertificateSigningRequest

// authority is an API server whose signer answers a request as decide says; nil leaves it undecided.
type authority struct {
	t      *testing.T
	key    *ecdsa.PrivateKey
	cert   *x509.Certificate
	life   time.Duration
	decide func(n int, r *request) *request

	mu       sync.Mutex
	requests map[string]*request
	asked    []*x509.CertificateRequest
	watchers map[string]*watch.RaceFreeFakeWatcher
}

func newAuthority(t *testing.T, life time.Duration) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, key: key, life: life, requests: map[string]*request{},
		watchers: map[string]*watch.RaceFreeFakeWatcher{},
		cert: &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true,
			BasicConstraintsValid: true}}
	a.decide = func(_ int, r *request) *request { return a.sign(r) }
	return a
}

// sign approves and issues.
func (a *authority) sign(r *request) *request {
	r = r.DeepCopy()
	asked := a.parse(r)
	der, err := x509.CreateCertificate(rand.Reader,
		&x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: asked.Subject,
			DNSNames:    asked.DNSNames,
			IPAddresses: asked.IPAddresses, NotBefore: time.Now(), NotAfter: time.Now().Add(a.life)}, a.cert,
		asked.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	r.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
	return r
}

func denied(r *request) *request {
	r = r.DeepCopy()
	r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "No", Message: "go away"}}
	return r
}

func (a *authority) parse(r *request) *x509.CertificateRequest {
	block, _ := pem.Decode(r.Spec.Request)
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		a.t.Fatal(err)
	}
	return asked
}

func (a *authority) CreateCertificateRequest(_ context.Context, r *request) (*request, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r = r.DeepCopy()
	if r.Name == "" {
		r.Name = fmt.Sprintf("%s%d", r.GenerateName, len(a.asked))
	}
	if a.requests[r.Name] != nil {
		return nil, apierrors.NewAlreadyExists(certificatesv1.Resource("certificatesigningrequests"), r.Name)
	}
	r.UID = types.UID(r.Name)
	a.asked = append(a.asked, a.parse(r))
	a.requests[r.Name] = r
	if next := a.decide(len(a.asked), r); next != nil {
		a.requests[r.Name] = next
	}
	return r, nil
}

func (a *authority) CertificateRequest(_ context.Context, name string) (*request, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests[name], nil
}

func (a *authority) CertificateRequests(name string) cache.ListerWatcher {
	return apiclient.PlainListWatch{ListWatch: &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.watchers[name] = watch.NewRaceFreeFake()
			return &certificatesv1.CertificateSigningRequestList{ListMeta: metav1.ListMeta{ResourceVersion: "1"},
				Items: []request{*a.requests[name]}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.watchers[name], nil
		},
	}}
}

func (a *authority) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

func (a *authority) last() *x509.CertificateRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[len(a.asked)-1]
}

// running runs a manager in the bubble until the test ends.
func running(t *testing.T, a *authority, dir string, template func() *x509.CertificateRequest,
	renewed func()) (*Manager, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	m, err := NewManager(Config{Changed: notify.New(), Store: Store{dir, "kubelet-server"},
		Signer: certificatesv1.KubeletServingSignerName,
		Usage:  certificatesv1.UsageServerAuth, Template: template,
		Requests: func() (Requests, error) {
			return a, nil
		}, Renewed: renewed, Metrics: NewServingMetrics(reg), Now: time.Now, Random: func() float64 { return 0.5 },
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return m, reg
}

// value is the value of a metric, of a histogram how many were observed.
func value(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			m := f.Metric[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

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

// TestBootstrap: the first certificate makes a kubeconfig; a kubelet that is started again meanwhile goes on with its
// request, one that has its certificate asks for none, and one whose certificate has ended does.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, dir := newAuthority(t, time.Hour), t.TempDir()
		file := filepath.Join(dir, "kubeconfig")
		boot := func(ctx context.Context) error {
			return Bootstrap(ctx, BootstrapConfig{Kubeconfig: file,
				Connection: &rest.Config{Host: "https://api:6443", BearerToken: "t",
					TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca")}},
				Requests: a, Store: Store{filepath.Join(dir, "pki"), "kubelet-client"}, Node: "n", Now: time.Now,
				Log: slog.New(slog.DiscardHandler)})
		}
		a.decide = func(int, *request) *request { return nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if boot(ctx) == nil {
			t.Error("no certificate, and no error")
		}
		a.mu.Lock()
		for name, r := range a.requests {
			a.requests[name] = a.sign(r)
		}
		a.mu.Unlock()
		if err := boot(t.Context()); err != nil || a.count() != 1 {
			t.Fatalf("%v, asked %d times", err, a.count())
		}
		config, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil || config.Host != "https://api:6443" || config.BearerToken != "" ||
			string(config.CAData) != "ca" || config.CertFile != filepath.Join(dir, "pki/kubelet-client-current.pem") {
			t.Errorf("%v, %+v", err, config)
		}
		if _, err := os.Stat(filepath.Join(dir, "pki/kubelet-client.key.tmp")); !os.IsNotExist(err) {
			t.Errorf("the key stays: %v", err)
		}
		a.decide = func(_ int, r *request) *request { return a.sign(r) }
		if err := boot(t.Context()); err != nil || a.count() != 1 {
			t.Errorf("%v, asked %d times", err, a.count())
		}
		time.Sleep(time.Hour)
		if err := boot(t.Context()); err != nil || a.count() != 2 {
			t.Errorf("%v, asked %d times", err, a.count())
		}
	})
}

// TestBootstrapRefused: a refusal ends the kubelet with its reason, and its next start asks again.
func TestBootstrapRefused(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t, time.Hour), t.TempDir()
	a.decide = func(_ int, r *request) *request { return denied(r) }
	for range 2 {
		err := Bootstrap(t.Context(),
			BootstrapConfig{Kubeconfig: filepath.Join(dir, "k"), Connection: &rest.Config{}, Requests: a,
				Store: Store{dir, "kubelet-client"}, Node: "n",
				Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), "go away") {
			t.Error(err)
		}
	}
	if a.count() != 2 {
		t.Errorf("asked %d times", a.count())
	}
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
