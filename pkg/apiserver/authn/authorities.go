package authn

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"sync"
)

// Authorities are those of several files together: the ones whose certificates TLS asks clients for.
type Authorities struct {
	files []*CAFile

	mu          sync.Mutex
	generations []uint64 // of the files, when config was made
	config      *tls.Config
}

// NewAuthorities returns the authorities of files.
func NewAuthorities(files ...*CAFile) *Authorities { return &Authorities{files: files} }

// Ask makes the server of config ask clients for a certificate, and name the authorities in the handshake as the files have them at that
// moment: a client with several certificates shows the one that is known here. What it shows is verified by who uses it, not by TLS.
func (a *Authorities) Ask(config *tls.Config) {
	if len(a.files) == 0 {
		return
	}
	config.ClientAuth = tls.RequestClientCert
	plain := config.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return a.current(plain), nil }
}

// current is plain with the authorities. It is the same as long as they are, as sessions are resumed only within one configuration.
func (a *Authorities) current(plain *tls.Config) *tls.Config {
	bundles := make([]CABundle, len(a.files))
	generations := make([]uint64, len(a.files))
	for i, f := range a.files {
		bundles[i] = f.Bundle()
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
