package node

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"bonsai/pkg/cluster/host"
)

// TestLeastMemory: a node evicts pods before the kernel takes pages of files back to keep what it keeps free.
func TestLeastMemory(t *testing.T) {
	t.Parallel()
	for kept, want := range map[int64]int64{0: 102_400, 101 << 20: 205_824} {
		if got := leastMemory(kept); got != want {
			t.Errorf("%d bytes kept: %d KiB, not %d", kept, got, want)
		}
	}
	n := &Config{Name: "n1", DataDir: t.TempDir(), Addresses: []netip.Prefix{netip.MustParsePrefix("10.77.0.11/24")}}
	if line := fmt.Sprintf("evictionHard: {memory.available: %dKi, ", leastMemory(host.KeptFree())); !strings.Contains(
		n.KubeletConfig(), line) {
		t.Errorf("no %q in\n%s", line, n.KubeletConfig())
	}
}
