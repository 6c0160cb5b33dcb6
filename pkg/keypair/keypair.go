// Package keypair is a certificate with its key in two files, which are read again when they change.
package keypair

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
)

// Pair is a certificate with its key, in two files. It is safe for concurrent use.
type Pair struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate // the last that could be read
	read    [2]os.FileInfo   // of its two files
	failure string           // of the last attempt, which has been logged; "": it succeeded
}

// Load reads a certificate and its key. What goes wrong later, when the files change, goes to log.
func Load(certFile, keyFile string, log *slog.Logger) (*Pair, error) {
	p := &Pair{certFile: certFile, keyFile: keyFile, log: log}
	if err := p.refresh(); err != nil {
		return nil, err
	}
	return p, nil
}

// Current is the certificate that the files have now: whoever renews it writes them again, or lets a link point to
// others, and restarts nothing. While they cannot be read or do not belong together, because so far only one is
// written, it is the one from before; the next call tries again. Each new reason is logged once.
func (p *Pair) Current() *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.refresh(); err == nil {
		p.failure = ""
	} else if err.Error() != p.failure {
		p.failure = err.Error()
		p.log.Warn("a certificate or its key could not be read again, and the one from before stays in use",
			"certificate", p.certFile, "key", p.keyFile, "err", err)
	}
	return p.current
}

// Client shows the server of a connection the certificate of that moment; it is what tls.Config.GetClientCertificate
// asks for.
func (p *Pair) Client(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return p.Current(), nil }

// refresh reads the files if they are others than those of the current certificate. They are looked at before they are
// read: what is written between the two is seen by the next call.
func (p *Pair) refresh() error {
	var found [2]os.FileInfo
	changed := p.current == nil
	for i, file := range []string{p.certFile, p.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		found[i] = info
		changed = changed || !sameContent(info, p.read[i])
	}
	if !changed {
		return nil
	}
	c, err := tls.LoadX509KeyPair(p.certFile, p.keyFile)
	if err != nil {
		return err
	}
	if p.current != nil {
		p.log.Info("a certificate and its key were read again", "certificate", p.certFile, "key", p.keyFile)
	}
	p.current, p.read = &c, found
	return nil
}

func sameContent(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
