package main

import (
	"testing"

	"bonsai/cmd/internal/flagtest"
)

func TestStockFlags(t *testing.T) {
	t.Parallel()
	flagtest.Stock(t, "kube-proxy", newCommand().Flags(), accepted())
}

// TestProtectingFlags: a flag that protects and is not built ends the start.
func TestProtectingFlags(t *testing.T) {
	t.Parallel()
	flagtest.Refused(t, "kube-proxy", newCommand, refused())
}

// TestReferenceFlags: docs/reference has the flags as they are.
func TestReferenceFlags(t *testing.T) {
	t.Parallel()
	flagtest.Reference(t, newCommand(), accepted(), refused())
}
