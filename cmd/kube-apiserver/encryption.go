package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/identity"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/encryption"
	"bonsai/pkg/health"
)

// encrypting is what --encryption-provider-config adds to the server; all nil without it.
type encrypting struct {
	transform func(key string) storage.Transformer
	checks    []health.Check // of /healthz and /readyz
	run       func(ctx context.Context) error
	close     func()
}

// newEncryption reads the file of --encryption-provider-config, if there is one. ctx outlives the requests.
func newEncryption(ctx context.Context, o *options, rows []resources.Row, counted prometheus.Registerer,
	log *slog.Logger) (*encrypting, error) {
	if o.encryptionConfig == "" {
		return &encrypting{close: func() {}}, nil
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read the hostname: %w", err)
	}
	e, err := encryption.New(ctx, encryption.Config{File: o.encryptionConfig, Reload: o.encryptionReload, Rows: rows,
		ServerID: identity.Name(hostname), Metrics: counted, Log: log})
	if err != nil {
		return nil, fmt.Errorf("--encryption-provider-config: %w", err)
	}
	return &encrypting{transform: e.Transformer, checks: e.Checks(), run: e.Run, close: func() {
		if err := e.Close(); err != nil {
			log.Warn("a KMS provider could not be closed", "err", err)
		}
	}}, nil
}
