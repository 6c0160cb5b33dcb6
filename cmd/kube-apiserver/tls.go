package main

import (
	"crypto/tls"
	"fmt"
	"net"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/authorities"
)

// servingTLS is the server's side of TLS: its certificate, and whose certificates clients may show.
func servingTLS(o *options, clients *authorities.Set) (*tls.Config, error) {
	pair, err := servingCertificate(o)
	if err != nil {
		return nil, err
	}
	cfg, err := o.serving.TLS(pair.Current)
	if err != nil {
		return nil, err
	}
	clients.Ask(cfg)
	return cfg, nil
}

// servingCertificate reads the certificate of the flags, or that of --cert-dir, which it makes if it is not there.
func servingCertificate(o *options) (*daemon.KeyPair, error) {
	if o.tlsCert != "" {
		pair, err := daemon.LoadKeyPair(o.tlsCert, o.tlsKey)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert-file %q, --tls-private-key-file %q: %w", o.tlsCert, o.tlsKey, err)
		}
		return pair, nil
	}
	host := o.advertiseAddress
	if host == "" && !net.ParseIP(o.bindAddress).IsUnspecified() {
		host = o.bindAddress
	}
	return daemon.KeptSelfSigned(o.certDir, "apiserver", host)
}
