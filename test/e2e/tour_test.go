package e2e

import (
	"strings"
	"testing"
	"time"
)

// TestTour: what every chapter of `bonsai tour` says comes true on the cluster, and nothing of it is left.
func TestTour(t *testing.T) {
	isLong(t)
	out, err := cluster.command(10*time.Minute, "bonsai", "tour", "--yes")
	if err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"THE LIFE OF A POD", "WHAT HAPPENS WHEN SOMETHING BREAKS"} {
		if !strings.Contains(out, title) {
			t.Errorf("no %q in\n%s", title, out)
		}
	}
	left, err := cluster.command(time.Minute, "kubectl", "get", "namespaces")
	if err != nil || strings.Contains(left, "bonsai-tour") {
		t.Error(left, err)
	}
}
