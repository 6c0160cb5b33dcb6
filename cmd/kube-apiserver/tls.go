package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/authorities"
	"bonsai/pkg/keypair"
)

// servingTLS is the server's side of TLS: its certificate, and whose certificates clients may show.
func servingTLS(o *options, clients *authorities.Set, log *slog.Logger) (*tls.Config, error) {
	pair, err := servingCertificate(o, log)
	if err != nil {
		return nil, err
	}
	cfg, err := o.serving.TLS(pair.Current, log)
	if err != nil {
		return nil, err
	}
	clients.Ask(cfg)
	return cfg, nil
}

// servingCertificate reads the certificate of the flags, or that of --cert-dir, which it makes if it is not there.
func servingCertificate(o *options, log *slog.Logger) (*keypair.Pair, error) {
	if o.tlsCert != "" {
		pair, err := keypair.Load(o.tlsCert, o.tlsKey, log)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert-file %q, --tls-private-key-file %q: %w", o.tlsCert, o.tlsKey, err)
		}
		return pair, nil
	}
	host := o.advertiseAddress
	if host == "" && !net.ParseIP(o.bindAddress).IsUnspecified() {
		host = o.bindAddress
	}
	return daemon.KeptSelfSigned(o.certDir, "apiserver", host, log)
}
