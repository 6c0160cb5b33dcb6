package certificate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bonsai/pkg/durable"
)

// Store keeps a certificate with its key in one PEM file, Dir/Prefix-<time>.pem; the link Dir/Prefix-current.pem leads
// to the newest.
type Store struct {
	// Dir is --cert-dir; Prefix is kubelet-client or kubelet-server.
	Dir, Prefix string
}

// Path is the link to the newest certificate.
func (s Store) Path() string { return filepath.Join(s.Dir, s.Prefix+"-current.pem") }

// current returns the newest certificate, nil if there is none.
func (s Store) current() (*tls.Certificate, error) {
	pair, err := os.ReadFile(s.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	cert, err := tls.X509KeyPair(pair, pair)
	if err != nil {
		return nil, fmt.Errorf("the certificate in %s: %w", s.Path(), err)
	}
	return &cert, nil
}

// Update makes a certificate the newest; both parts are PEM. Whenever the kubelet is killed, the link leads to a whole
// file.
//
// The pair is checked before anything is written. rename(2) replaces the link in one step. Earlier files stay.
func (s Store) Update(cert, key []byte, now time.Time) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("the certificate that was issued: %w", err)
	}
	if err := os.MkdirAll(s.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("make the directory of certificates: %w", err)
	}
	path, err := filepath.Abs(filepath.Join(s.Dir, s.Prefix+"-"+now.Format("2006-01-02-15-04-05")+".pem"))
	if err != nil {
		return nil, fmt.Errorf("find the directory of certificates: %w", err)
	}
	if err := durable.Write(path, append(append([]byte{}, cert...), key...)); err != nil {
		return nil, fmt.Errorf("keep the certificate: %w", err)
	}
	updated := filepath.Join(s.Dir, s.Prefix+"-updated.pem")
	if err := os.Remove(updated); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("keep the certificate: %w", err)
	}
	if err := os.Symlink(path, updated); err != nil {
		return nil, fmt.Errorf("keep the certificate: %w", err)
	}
	if err := durable.Rename(updated, s.Path()); err != nil {
		return nil, fmt.Errorf("keep the certificate: %w", err)
	}
	return &pair, nil
}
