package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"bonsai/pkg/kubelet/notify"
)

// Held is a certificate while it is valid. It exists apart from its Manager, which stores newer ones: the connection by
// which a certificate is asked for presents it. Safe for concurrent use.
//
// One Manager stores into it, any number of connections read it, without a lock.
type Held struct {
	now     func() time.Time
	current atomic.Pointer[tls.Certificate]
}

// NewHeld returns a Held without a certificate.
func NewHeld(now func() time.Time) *Held { return &Held{now: now} }

// Current returns the certificate, nil while there is none that is valid.
func (h *Held) Current() *tls.Certificate {
	c := h.current.Load()
	if c == nil || !h.now().Before(c.Leaf.NotAfter) {
		return nil
	}
	return c
}

// Config is what a Manager needs. Every field is required unless its comment says otherwise.
type Config struct {
	// Held gets the certificate; nil: the Manager has one of its own.
	Held *Held
	// Changed is notified when Template may return something else: the certificate is looked at again. nil: it never
	// does.
	Changed notify.Signal
	Store   Store
	Signer  string
	// Usage is what the certificate is for: client auth or server auth.
	Usage certificatesv1.KeyUsage
	// Template is what the certificate shall say now; nil: nothing can be asked for yet.
	Template func() *x509.CertificateRequest
	// Requests is whom a certificate is asked of. It is called for each request.
	Requests func() (Requests, error)
	// First is used while the store has nothing that is valid; nil: there is none.
	First *tls.Certificate
	// Renewed, if set, is called when there is a new certificate.
	Renewed func()
	Metrics *Metrics
	Now     func() time.Time
	// Random returns a number from 0 up to 1, so that not all nodes renew their certificates at once.
	Random func() float64
	Log    *slog.Logger
}

// Manager keeps one certificate valid.
type Manager struct {
	cfg Config
}

// NewManager reads what certificate there is. It sends nothing.
//
// An expired certificate in the store is no error: First or a renewal takes its place.
func NewManager(cfg Config) (*Manager, error) {
	if cfg.Template == nil || cfg.Requests == nil || cfg.Now == nil || cfg.Random == nil || cfg.Log == nil {
		return nil, errors.New("certificate: Template, Requests, Now, Random and Log are required")
	}
	if cfg.Held == nil {
		cfg.Held = NewHeld(cfg.Now)
	}
	m := &Manager{cfg: cfg}
	kept, err := cfg.Store.current()
	if err != nil {
		return nil, err
	}
	if kept == nil || !cfg.Now().Before(kept.Leaf.NotAfter) {
		kept = cfg.First
	}
	m.cfg.Held.current.Store(kept)
	cfg.Metrics.expires(func() (time.Time, bool) {
		if c := m.cfg.Held.current.Load(); c != nil {
			return c.Leaf.NotAfter, true
		}
		return time.Time{}, false
	}, cfg.Now)
	return m, nil
}

// Current returns the certificate, nil while there is none that is valid.
func (m *Manager) Current() *tls.Certificate { return m.cfg.Held.Current() }

// A request waits for its certificate for as long as approveTimeout, then a new one is made. What fails is tried again
// after firstRetry, doubled up to lastRetry. Also what is issued for so short a time that it is due at once is left
// alone for firstRetry.
const (
	approveTimeout = 15 * time.Minute
	firstRetry     = 2 * time.Second
	lastRetry      = 32 * time.Second
	// lookEvery is how often it is looked whether the certificate is due: a clock that is put right moves no timer.
	lookEvery = time.Minute
)

// Run renews the certificate between 70 % and 90 % of its life, and as soon as it lacks what it shall say, until ctx
// ends.
//
// It is the only goroutine that renews. A change of the template restarts the wait, and also a request that is under
// way.
func (m *Manager) Run(ctx context.Context) error {
	retry, part := firstRetry, m.part()
	var earliest time.Time
	for {
		due, asks := m.due(part)
		var timer <-chan time.Time
		if asks {
			now := m.cfg.Now()
			timer = time.After(min(max(due.Sub(now), earliest.Sub(now)), lookEvery))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.cfg.Changed:
			continue
		case <-timer:
		}
		// lookEvery has passed, and nothing more.
		if m.cfg.Now().Before(due) {
			continue
		}
		err := m.renew(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errOutdated):
			continue
		case err == nil:
			retry, part, earliest = firstRetry, m.part(), m.cfg.Now().Add(firstRetry)
			continue
		}
		m.cfg.Metrics.failed()
		m.cfg.Log.Error("certificate not renewed", "signer", m.cfg.Signer, "retry", retry, "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retry):
		}
		retry = min(2*retry, lastRetry)
	}
}

// part is the part of its life after which a certificate is renewed, from 0.7 to 0.9 by chance, so that the nodes of a
// cluster that started together do not ask together.
func (m *Manager) part() float64 { return 0.7 + 0.2*m.cfg.Random() }

// due is when the certificate is to be renewed, at once if it has not what it shall; false: nothing can be asked for.
func (m *Manager) due(part float64) (time.Time, bool) {
	template := m.cfg.Template()
	if template == nil {
		return time.Time{}, false
	}
	c := m.Current()
	if c == nil || !satisfies(c.Leaf, template) {
		return m.cfg.Now(), true
	}
	life := c.Leaf.NotAfter.Sub(c.Leaf.NotBefore)
	return c.Leaf.NotBefore.Add(time.Duration(part * float64(life))), true
}

// errOutdated: what was asked for is not what the certificate shall say any more.
var errOutdated = errors.New("the certificate shall say something else now")

// renew asks for a certificate and keeps it.
//
// A new key each time. Old and new certificate are both valid for a while, so connections need not end at once.
func (m *Manager) renew(ctx context.Context) error {
	template := m.cfg.Template()
	if template == nil {
		return errOutdated
	}
	key, keyPEM, err := newKey()
	if err != nil {
		return err
	}
	api, err := m.cfg.Requests()
	if err != nil {
		return fmt.Errorf("make a client for certificate requests: %w", err)
	}
	r, err := newRequest("", m.cfg.Signer, m.cfg.Usage, template, key)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, approveTimeout)
	defer cancel()
	if r, err = api.CreateCertificateRequest(ctx, r); err != nil {
		return fmt.Errorf("create a certificate request: %w", err)
	}
	m.cfg.Log.Info("asked for a certificate", "signer", m.cfg.Signer, "request", r.Name)
	certPEM, err := m.await(ctx, api, r, template)
	if err != nil {
		return err
	}
	cert, err := m.cfg.Store.Update(certPEM, keyPEM, m.cfg.Now())
	if err != nil {
		return err
	}
	if old := m.cfg.Held.current.Swap(cert); old != nil {
		m.cfg.Metrics.rotated(m.cfg.Now().Sub(old.Leaf.NotBefore))
	}
	m.cfg.Log.Info("has a new certificate", "signer", m.cfg.Signer, "request", r.Name, "notAfter", cert.Leaf.NotAfter)
	if m.cfg.Renewed != nil {
		m.cfg.Renewed()
	}
	return nil
}

// await waits for a request's certificate while what was asked for is still what the certificate shall say.
func (m *Manager) await(ctx context.Context, api Requests, r *certificatesv1.CertificateSigningRequest,
	asked *x509.CertificateRequest) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	defer func() { <-watched }()
	defer cancel(nil)
	go func() {
		defer close(watched)
		for {
			select {
			case <-ctx.Done():
				return
			case <-m.cfg.Changed:
			}
			if now := m.cfg.Template(); now == nil || !same(now, asked) {
				cancel(errOutdated)
			}
		}
	}()
	return await(ctx, api, r.Name, r.UID, m.cfg.Log)
}
