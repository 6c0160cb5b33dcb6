package authorities

import (
	"bytes"
	"crypto/x509"
	"errors"
	"sync"
)

// Bundle is one content of a Source. Pool is nil and Generation 0 while nothing is known; Generation grows by one with
// each new content.
type Bundle struct {
	Pool       *x509.CertPool
	PEM        []byte
	Generation uint64
}

// Held keeps the authorities that it was last given; the zero value has none. It is safe for concurrent use.
type Held struct {
	mu     sync.Mutex
	bundle Bundle
}

var _ Source = (*Held)(nil)

// Bundle implements Source.
func (h *Held) Bundle() Bundle {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bundle
}

// Set takes PEM certificates. Those of before stay if there is none in it, which is an error.
func (h *Held) Set(pem []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bundle.Pool != nil && bytes.Equal(pem, h.bundle.PEM) {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return errors.New("no PEM certificate in it")
	}
	h.bundle = Bundle{Pool: pool, PEM: pem, Generation: h.bundle.Generation + 1}
	return nil
}
