package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/authn/serviceaccount/externaljwt"
)

// newExternalSigner connects to the process of --service-account-signing-endpoint; nil without the flag.
func newExternalSigner(ctx context.Context, o *options, counted prometheus.Registerer,
	log *slog.Logger) (*externaljwt.Signer, error) {
	if o.signingEndpoint == "" {
		return nil, nil
	}
	s, err := externaljwt.Open(ctx, externaljwt.Config{Socket: o.signingEndpoint, Metrics: counted, Log: log})
	if err != nil {
		return nil, fmt.Errorf("--service-account-signing-endpoint: %w", err)
	}
	return s, nil
}
