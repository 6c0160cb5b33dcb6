package main

import (
	"testing"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/cmd/internal/flagtest"
)

func TestStockFlags(t *testing.T) {
	t.Parallel()
	flagtest.Stock(t, "kubelet", newCommand().Flags(), accepted())
}

// TestProtectingFlags: a flag that protects and is not built ends the start.
func TestProtectingFlags(t *testing.T) {
	t.Parallel()
	flagtest.Refused(t, "kubelet", newCommand, nil)
}

// TestReferenceFlags: docs/reference has the flags as they are.
func TestReferenceFlags(t *testing.T) {
	t.Parallel()
	flagtest.Reference(t, newCommand(), accepted(), nil, limitedFlags()...)
}

// limitedFlags are the flags of those fields of the configuration file that take only some values.
func limitedFlags() (out []flagtest.Limited) {
	for _, f := range limitedFields(exampleOfLimits()) {
		if f.flag != "" {
			out = append(out, flagtest.Limited{Name: f.flag, Why: f.why})
		}
	}
	return out
}

// exampleOfLimits is a configuration whose values stand in the errors of limitedFields.
func exampleOfLimits() *kubeletconfig.KubeletConfiguration {
	return &kubeletconfig.KubeletConfiguration{ReadOnlyPort: 10255}
}
