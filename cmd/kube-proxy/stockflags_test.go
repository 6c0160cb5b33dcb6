package main

import (
	"testing"

	"bonsai/cmd/internal/flagtest"
)

func TestStockFlags(t *testing.T) {
	t.Parallel()
	flagtest.Stock(t, "kube-proxy", newCommand().Flags())
}
