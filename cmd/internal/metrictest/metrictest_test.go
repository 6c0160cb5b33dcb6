package metrictest

import (
	"slices"
	"testing"
)

// TestAbsent reads the rows of a component below the heading, and no others.
func TestAbsent(t *testing.T) {
	t.Parallel()
	page := "| `kubelet` | `flag` | why |\n\n## Metrics\n\n| of | not there | why |\n|---|---|---|\n| `kubelet`, `kube-proxy` | `a_total`, `b` | no `c` |\n| `kube-scheduler` | `d` | why |\n"
	if got, want := absent(page, "kubelet"), []string{"a_total", "b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
