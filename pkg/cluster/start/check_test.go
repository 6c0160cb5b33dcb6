package start

import (
	"testing"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestNeedsPorts: a finding about ports names real ones for a cluster whose ports are still open, too.
func TestNeedsPorts(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	for _, test := range []struct {
		ports plan.Ports
		want  [3]int
	}{
		{plan.Ports{}, [...]int{6443, 2379, 2380}},
		{plan.Ports{API: 7443}, [...]int{7443, 2379, 2380}},
		{plan.Ports{API: 6543, EtcdClient: 2479, EtcdPeer: 2480}, [...]int{6543, 2479, 2480}},
	} {
		c.Ports = test.ports
		n := needsOf(c)
		if got := [...]int{n.APIPort, n.EtcdClientPort, n.EtcdPeerPort}; got != test.want {
			t.Errorf("%+v: %v, want %v", test.ports, got, test.want)
		}
	}
}
