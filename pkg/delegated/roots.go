package delegated

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Roots are the authorities whose clients are believed.
type Roots interface {
	// Get returns them, nil while they are not known.
	Get(ctx context.Context) *x509.CertPool
}

// Fixed are roots that stay.
type Fixed struct{ Pool *x509.CertPool }

var _ Roots = Fixed{}

// Get implements Roots.
func (f Fixed) Get(context.Context) *x509.CertPool { return f.Pool }

// ReadRoots reads a file of PEM certificates.
func ReadRoots(path string) (Fixed, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Fixed{}, fmt.Errorf("read the client CA file: %w", err)
	}
	pool, err := parseRoots(data)
	if err != nil {
		return Fixed{}, fmt.Errorf("the client CA file %s: %w", path, err)
	}
	return Fixed{pool}, nil
}

func parseRoots(data []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, errors.New("no certificate in it")
	}
	return pool, nil
}

// What was published is believed for lookupTTL, and then until it can be read again. After a failure there is no other try
// for lookupRetry.
const (
	lookupTTL   = time.Minute
	lookupRetry = 5 * time.Second
)

// ClientCAReader reads the authorities that the API server publishes for the servers behind it, as PEM.
type ClientCAReader interface {
	PublishedClientCA(ctx context.Context) ([]byte, error)
}

// Published are the roots that the API server publishes. They are looked up when the first client shows a certificate, so
// that a component can start before its API server.
type Published struct {
	client ClientCAReader
	now    func() time.Time
	log    *slog.Logger

	mu   sync.Mutex
	pool *x509.CertPool
	next time.Time // when to look again
	lost bool      // the last look-up failed, which was said
}

var _ Roots = (*Published)(nil)

// NewPublished returns roots that are not looked up yet.
func NewPublished(client ClientCAReader, now func() time.Time, log *slog.Logger) *Published {
	return &Published{client: client, now: now, log: log}
}

// Get implements Roots. A failure to look them up is logged, once until they are found again.
func (p *Published) Get(ctx context.Context) *x509.CertPool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now().Before(p.next) {
		return p.pool
	}
	// Others wait for this answer too: it must not depend on one client's patience.
	pool, err := p.lookup(context.WithoutCancel(ctx))
	if err != nil {
		if !p.lost {
			p.log.Warn("the published client CA cannot be read; client certificates are not accepted unless it was read before", "err", err)
		}
		p.lost, p.next = true, p.now().Add(lookupRetry)
		return p.pool
	}
	p.pool, p.lost, p.next = pool, false, p.now().Add(lookupTTL)
	return p.pool
}

func (p *Published) lookup(ctx context.Context) (*x509.CertPool, error) {
	data, err := p.client.PublishedClientCA(ctx)
	if err != nil {
		return nil, err
	}
	return parseRoots(data)
}
