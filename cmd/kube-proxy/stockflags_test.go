package main

import (
	"testing"

	"bonsai/cmd/internal/flagtest"
)

func TestStockFlags(t *testing.T) {
	t.Parallel()
	flagtest.Stock(t, "kube-proxy", newCommand().Flags(), accepted())
}

// TestReferenceFlags: docs/reference has the flags as they are.
func TestReferenceFlags(t *testing.T) {
	t.Parallel()
	flagtest.Reference(t, newCommand(), accepted(), nil)
}
