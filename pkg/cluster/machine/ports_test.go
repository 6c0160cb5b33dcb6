package machine

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestTakenPort: a port that somebody else has is named together with the process.
func TestTakenPort(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := plantest.Config(t)
	c.Ports.API = l.Addr().(*net.TCPAddr).Port
	m := plan.Machine{PortOwner: func(at netip.AddrPort) string { return portOwner(at, c.Mark()) }}
	if _, err = m.Plan(c); err == nil || !strings.Contains(err.Error(), l.Addr().String()) ||
		!strings.Contains(err.Error(), "(machine.test)") {
		t.Errorf("%v", err)
	}
}
