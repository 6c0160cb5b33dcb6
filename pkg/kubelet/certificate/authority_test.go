package certificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

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
