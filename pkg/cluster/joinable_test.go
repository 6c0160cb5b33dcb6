package cluster

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/plan"
)

func joinableConfig() plan.Config {
	c := plan.Default("/data", "/bin")
	c.AdvertiseAddress = netip.MustParseAddr("192.0.2.1")
	return c
}

// TestJoinable: what a cluster has for other machines it has only if it is told by which address they reach it.
func TestJoinable(t *testing.T) {
	t.Parallel()
	with, without := joinableConfig(), plan.Default("/data", "/bin")
	door := netip.MustParseAddrPort("192.0.2.1:6443")
	for _, c := range []plan.Config{with, without} {
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
		all := ""
		for _, p := range everyProcess(c) {
			all += strings.Join(p.Argv, " ") + " "
		}
		for what, has := range map[string]bool{
			"a door":     slices.Contains(c.Listening(), door),
			"the add-on": c.HasAddon("join"),
			"token auth": strings.Contains(all, "--enable-bootstrap-token-auth=true"),
			"signer, cleaner": strings.Contains(all,
				"--controllers=*,bootstrap-signer-controller,token-cleaner-controller"),
			"ways to machines": !strings.Contains(network.HostRules(c),
				`" ip daddr { 10.77.0.0/24, 10.244.0.0/16, 10.96.0.0/16 } drop`),
		} {
			if has != c.IsJoinable() {
				t.Errorf("joinable %t, %s %t", c.IsJoinable(), what, has)
			}
		}
	}
	for address, change := range map[string]func(*plan.Config){
		"127.0.0.1": nil, "0.0.0.0": nil, "2001:db8::1": nil, "10.244.3.4": nil, "10.77.0.1": nil, "224.0.0.1": nil,
		"192.0.2.1": func(c *plan.Config) {
			c.Egress = false
		}, "192.0.2.2": func(c *plan.Config) { c.IPFamily = plan.Dual },
	} {
		c := joinableConfig()
		c.AdvertiseAddress = netip.MustParseAddr(address)
		if change != nil {
			change(&c)
		}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--advertise-address") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
