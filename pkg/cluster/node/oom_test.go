package node

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestOOMScores: what runs a node has upstream's score, so that containers die before it, where the machine permits one
// as low; elsewhere a start must not fail for it.
func TestOOMScores(t *testing.T) {
	t.Parallel()
	want := 0
	if hasSysResource() {
		want = -999
	} else if own, err := os.ReadFile("/proc/self/oom_score_adj"); err == nil { // a session of systemd has a higher one
		if _, err := fmt.Sscan(string(own), &want); err != nil {
			t.Fatal(err)
		}
		want = max(want, 0)
	}
	n := &Config{Name: "n1", DataDir: t.TempDir(), Addresses: []netip.Prefix{netip.MustParsePrefix("10.77.0.11/24")}}
	if line := fmt.Sprintf("\noomScoreAdj: %d\n", want); !strings.Contains(n.KubeletConfig(), line) {
		t.Errorf("no %q in\n%s", line, n.KubeletConfig())
	}
	for _, p := range n.Processes(slog.New(slog.DiscardHandler)) {
		if flag := fmt.Sprintf("--oom-score-adj=%d", want); p.Name == "kube-proxy" && !slices.Contains(p.Argv, flag) {
			t.Errorf("no %s in %q", flag, p.Argv)
		}
	}
}
