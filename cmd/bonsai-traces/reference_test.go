package main

import (
	"log/slog"
	"path/filepath"
	"testing"

	"bonsai/cmd/internal/flagtest"
	"bonsai/pkg/referencetest"
)

// TestReferenceFlags: docs/reference has the flags as they are.
func TestReferenceFlags(t *testing.T) {
	t.Parallel()
	flagtest.Reference(t, newCommand(), nil, nil)
}

// TestReferenceMetrics: docs/reference has the metrics as they are.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	p := newParts(&options{socket: filepath.Join(t.TempDir(), "s"), dataDir: t.TempDir(), maxBytes: leastBytes,
		maxSpansPerObject: 10}, slog.New(slog.DiscardHandler))
	r := referencetest.NewRegistry()
	r.MustRegister(newCollector(p))
	referencetest.MetricsPage(t, component, "Metrics of bonsai-traces",
		"At `/metrics`, beside [those of every component](common.md).", "./cmd/bonsai-traces", r.Metrics())
}
