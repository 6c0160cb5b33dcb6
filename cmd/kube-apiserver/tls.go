package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/authorities"
)

// servingTLS is the server's side of TLS: its certificate, and whose certificates clients may show.
func servingTLS(o *options, clients *authorities.Set) (*tls.Config, error) {
	cert, err := servingCertificate(o)
	if err != nil {
		return nil, err
	}
	cfg, err := o.serving.TLS(cert)
	if err != nil {
		return nil, err
	}
	clients.Ask(cfg)
	return cfg, nil
}

// servingCertificate reads the certificate of the flags, or that of --cert-dir, which it makes if it is not there.
func servingCertificate(o *options) (tls.Certificate, error) {
	if o.tlsCert != "" {
		c, err := tls.LoadX509KeyPair(o.tlsCert, o.tlsKey)
		if err != nil {
			return c, fmt.Errorf("--tls-cert-file %q, --tls-private-key-file %q: %w", o.tlsCert, o.tlsKey, err)
		}
		return c, nil
	}
	certFile, keyFile := filepath.Join(o.certDir, "apiserver.crt"), filepath.Join(o.certDir, "apiserver.key")
	c, err := tls.LoadX509KeyPair(certFile, keyFile)
	if !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			err = fmt.Errorf("--cert-dir %q: %w", o.certDir, err)
		}
		return c, err
	}
	host := o.advertiseAddress
	if host == "" && !net.ParseIP(o.bindAddress).IsUnspecified() {
		host = o.bindAddress
	}
	if c, err = daemon.SelfSigned(host); err != nil {
		return c, fmt.Errorf("make a self-signed serving certificate: %w", err)
	}
	return c, saveCertificate(c, certFile, keyFile)
}

func saveCertificate(c tls.Certificate, certFile, keyFile string) error {
	if err := os.MkdirAll(filepath.Dir(certFile), 0o755); err != nil {
		return fmt.Errorf("--cert-dir: %w", err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return fmt.Errorf("save the serving key: %w", err)
	}
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600); err != nil {
		return fmt.Errorf("save the serving key: %w", err)
	}
	if err := os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), 0o644); err != nil {
		return fmt.Errorf("save the serving certificate: %w", err)
	}
	return nil
}
