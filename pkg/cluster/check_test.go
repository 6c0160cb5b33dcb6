package cluster

import (
	"net/netip"
	"slices"
	"testing"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
	"bonsai/pkg/cluster/preflight"
)

// TestContradictions: check finds missing what up refuses without a look at the machine, each in a line of its own.
func TestContradictions(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	if found := contradictions(c); len(found) > 0 {
		t.Error(found)
	}
	twice := plan.PortMapping{Address: netip.MustParseAddr(plan.Loopback), HostPort: 8080, NodePort: 30080}
	c.ControlPlanes, c.Ports.API, c.PortMappings = 2, 99999, []plan.PortMapping{twice, twice}
	var got []string
	for _, f := range contradictions(c) {
		if f.Level != preflight.Missing || f.Subject != "cluster" {
			t.Errorf("%+v", f)
		}
		got = append(got, f.String())
	}
	want := []string{"--control-planes: must be 1 or 3, not 2", "--api-port: must be between 1 and 65535, not 99999",
		"--port: 127.0.0.1:8080 is given twice"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	c.Joined = &plan.Joined{} // up does not validate what the cluster on another machine has decided
	if found := contradictions(c); len(found) > 0 {
		t.Error(found)
	}
}
