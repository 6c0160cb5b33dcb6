package certificate

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/apiclient"
)

// Requests are the API server's CertificateSigningRequests.
type Requests interface {
	CreateCertificateRequest(ctx context.Context,
		r *certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequest, error)
	CertificateRequest(ctx context.Context, name string) (*certificatesv1.CertificateSigningRequest, error)
	// CertificateRequests lists and watches the request of that name.
	CertificateRequests(name string) cache.ListerWatcher
}

// errRefused: a request was denied, or cannot be fulfilled. It will never be.
var errRefused = errors.New("the certificate is refused")

// newKey makes an ECDSA P-256 key, and its PEM.
func newKey() (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a key: %w", err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// newRequest is a request for what template says, signed by key. Without a name the server gives it one.
func newRequest(name, signer string, usage certificatesv1.KeyUsage, template *x509.CertificateRequest,
	key crypto.Signer) (*certificatesv1.CertificateSigningRequest, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate request: %w", err)
	}
	r := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		SignerName: signer,
		// An ECDSA key enciphers no keys.
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
	}}
	if r.Name = name; name == "" {
		r.GenerateName = "csr-"
	}
	return r, nil
}

// await returns the certificate of a request as soon as it is issued, in PEM.
//
// It watches the one object by its name.
func await(ctx context.Context, c Requests, name string, uid types.UID, log *slog.Logger) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	followed := make(chan struct{})
	defer func() { <-followed }()
	defer cancel()
	d := &decision{uid: uid, made: make(chan struct{})}
	go func() {
		defer close(followed)
		apiclient.Follow(ctx, c.CertificateRequests(name), "certificate request", d, log)
	}()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the certificate of request %s: %w", name, context.Cause(ctx))
	case <-d.made:
		return d.certificate, d.err
	}
}

// decision is the end of one request. One goroutine feeds it; the result may be read once made is closed.
type decision struct {
	uid         types.UID
	made        chan struct{}
	done        bool
	certificate []byte
	err         error
}

var _ apiclient.Sink[*certificatesv1.CertificateSigningRequest] = (*decision)(nil)

// Replace implements apiclient.Sink.
func (d *decision) Replace(all []*certificatesv1.CertificateSigningRequest) {
	if len(all) == 0 {
		d.decide(nil, fmt.Errorf("%w: its request is gone", errRefused))
	}
	for _, r := range all {
		d.Set(r)
	}
}

// Set implements apiclient.Sink.
//
// A request of another uid under this name would be somebody else's, with a certificate for somebody else's key.
func (d *decision) Set(r *certificatesv1.CertificateSigningRequest) {
	if r.UID != d.uid {
		d.decide(nil, fmt.Errorf("%w: its request %s was replaced", errRefused, r.Name))
		return
	}
	approved := false
	for _, c := range r.Status.Conditions {
		switch {
		case c.Type == certificatesv1.CertificateApproved:
			approved = true
		case c.Status == corev1.ConditionFalse:
		case c.Type == certificatesv1.CertificateDenied, c.Type == certificatesv1.CertificateFailed:
			d.decide(nil, fmt.Errorf("%w: request %s is %s: %s: %s", errRefused, r.Name, c.Type, c.Reason, c.Message))
			return
		}
	}
	if approved && len(r.Status.Certificate) > 0 {
		d.decide(r.Status.Certificate, nil)
	}
}

// Delete implements apiclient.Sink.
func (d *decision) Delete(r *certificatesv1.CertificateSigningRequest) {
	d.decide(nil, fmt.Errorf("%w: its request %s was deleted", errRefused, r.Name))
}

// decide takes the first decision.
func (d *decision) decide(certificate []byte, err error) {
	if !d.done {
		d.done, d.certificate, d.err = true, certificate, err
		close(d.made)
	}
}
