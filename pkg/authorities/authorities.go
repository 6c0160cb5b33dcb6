// Package authorities are the certificate authorities whose clients a server believes: read again when they change, and
// named to clients in the TLS handshake.
package authorities

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"sync"
)

// Source has authorities as they are now. It is safe for concurrent use.
type Source interface{ Bundle() Bundle }

// Set is the authorities of several sources together: the ones whose certificates TLS asks clients for.
type Set struct {
	sources []Source

	mu          sync.Mutex
	generations []uint64 // of the sources, when config was made
	config      *tls.Config
}

// Of returns the authorities of sources.
func Of(sources ...Source) *Set { return &Set{sources: sources} }

// Ask makes the server of config ask clients for a certificate, and name the authorities in the handshake as the
// sources have them at that moment: a client with several certificates shows the one that is known here. What it shows
// is verified by who uses it, not by TLS.
func (a *Set) Ask(config *tls.Config) {
	if len(a.sources) == 0 {
		return
	}
	config.ClientAuth = tls.RequestClientCert
	plain := config.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return a.current(plain), nil }
}

// current is plain with the authorities. It is the same as long as they are, as sessions are resumed only within one
// configuration.
func (a *Set) current(plain *tls.Config) *tls.Config {
	bundles := make([]Bundle, len(a.sources))
	generations := make([]uint64, len(a.sources))
	for i, source := range a.sources {
		bundles[i] = source.Bundle()
		generations[i] = bundles[i].Generation
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.config != nil && slices.Equal(generations, a.generations) {
		return a.config
	}
	pool := x509.NewCertPool()
	for _, b := range bundles {
		pool.AppendCertsFromPEM(b.PEM)
	}
	c := plain.Clone()
	c.ClientCAs = pool
	a.config, a.generations = c, generations
	return c
}
