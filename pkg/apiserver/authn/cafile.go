package authn

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"
)

// checkEvery is how often at most a CAFile looks whether its file changed.
const checkEvery = time.Second

// CAFile is a PEM bundle of certificate authorities in a file, read again when the file changes. A new content that holds no
// certificate is not taken over: the last good one stays. It is safe for concurrent use.
type CAFile struct {
	path string
	now  func() time.Time

	mu      sync.Mutex
	checked time.Time
	stat    os.FileInfo
	bundle  CABundle
}

// CABundle is one content of a CAFile. Generation grows by one with each new content.
type CABundle struct {
	Pool       *x509.CertPool
	PEM        []byte
	Generation uint64
}

// NewCAFile reads the bundle in path.
func NewCAFile(path string) (*CAFile, error) {
	f := &CAFile{path: path, now: time.Now}
	if err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

// Bundle returns the bundle as the file has it, not older than about a second.
func (f *CAFile) Bundle() CABundle {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Sub(f.checked) >= checkEvery {
		f.checked = now
		if st, err := os.Stat(f.path); err == nil && !sameFile(st, f.stat) {
			_ = f.read() // a file that is half written is read again once its size or time moves
		}
	}
	return f.bundle
}

func sameFile(a, b os.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

func (f *CAFile) read() error {
	st, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("reading certificate authorities: %w", err)
	}
	raw, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("reading certificate authorities: %w", err)
	}
	f.stat = st
	if f.bundle.Pool != nil && bytes.Equal(raw, f.bundle.PEM) {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return fmt.Errorf("reading certificate authorities: %s holds no PEM certificate", f.path)
	}
	f.bundle = CABundle{Pool: pool, PEM: raw, Generation: f.bundle.Generation + 1}
	return nil
}
