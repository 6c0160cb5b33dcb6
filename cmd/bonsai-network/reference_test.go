package main

import (
	"testing"

	"bonsai/cmd/internal/flagtest"
)

// TestReferenceFlags: docs/reference has the flags as they are.
func TestReferenceFlags(t *testing.T) {
	t.Parallel()
	flagtest.Reference(t, newCommand(), nil, nil)
}
