package network

import (
	"net/netip"
	"strings"
	"testing"

	"bonsai/pkg/cluster/plan"
)

// TestHostRules: addresses of pods, nodes and services never leave the machine, and the rest only with egress; nobody
// comes in by another link but machines that have joined; without egress nodes and pods reach the API server alone of
// this machine's own services.
func TestHostRules(t *testing.T) {
	t.Parallel()
	c := plan.Default("/data", "/bin")
	out, in := `iifname "`+c.Mark()+`" oifname != "`+c.Mark()+`" `, `oifname "`+c.Mark()+`" iifname != "`+c.Mark()+`" `
	inside, outside := out+"ip daddr { 10.77.0.0/24, 10.244.0.0/16, 10.96.0.0/16 } drop", out+"drop"
	strangers, neighbours := in+"drop",
		`iifname != { "`+c.Mark()+`", "lo" } ip daddr { 10.77.0.0/24, 10.244.0.0/16, 10.96.0.0/16 } drop`
	services, server := `iifname "`+c.Mark()+`" ct state new drop`,
		`iifname "`+c.Mark()+`" ip daddr 10.77.0.1 tcp dport 6443 accept`
	joined := in + "ip saddr @joined accept"
	shut, joinable, six := c, c, c
	shut.Egress = false
	shut.Mirrors = []plan.Mirror{{Registry: plan.EveryRegistry, URL: "http://10.77.0.1:5055"},
		{Registry: "docker.io", URL: "https://mirror.example"}, {Registry: "quay.io", URL: "https://[fd00::1]"}}
	joinable.AdvertiseAddress = netip.MustParseAddr("192.0.2.1")
	six.IPFamily = plan.IPv6
	for name, want := range map[string]struct {
		c       plan.Config
		has, no []string
	}{
		"egress": {c, []string{inside, strangers, neighbours}, []string{outside, services, joined}},
		"no egress": {shut, []string{inside, outside, strangers, neighbours, server, services,
			`ip daddr 10.77.0.1 tcp dport 5055 accept`}, []string{joined, "fd00"}},
		"joinable": {joinable, []string{joined, strangers, neighbours}, []string{inside, outside, services}},
		"IPv6": {six, []string{outside, strangers, "ip6 daddr ::1 tcp dport 6443 dnat to ["},
			[]string{"table ip ", services, "masquerade"}},
	} {
		rules := HostRules(want.c)
		for _, rule := range want.has {
			if !strings.Contains(rules, rule) {
				t.Errorf("%s: no %s in\n%s", name, rule, rules)
			}
		}
		for _, rule := range want.no {
			if strings.Contains(rules, rule) {
				t.Errorf("%s: there is %s in\n%s", name, rule, rules)
			}
		}
	}
}

// TestHostRulesOfIPv6: nothing of IPv6 leaves the cluster through the host, and a cluster of IPv6 alone is reached
// at [::1].
func TestHostRulesOfIPv6(t *testing.T) {
	t.Parallel()
	c := plan.Default("/data", "/bin")
	if strings.Contains(HostRules(c), "ip6") {
		t.Error("rules for IPv6 in a cluster of IPv4")
	}
	for _, c.IPFamily = range []plan.IPFamily{plan.Dual, plan.IPv6} {
		rules := HostRules(c)
		if !strings.Contains(rules, "oifname != \""+c.Mark()+"\" drop") {
			t.Errorf("IPv6 may leave:\n%s", rules)
		}
		if dnat := strings.Contains(rules,
			"ip6 daddr ::1 tcp dport 6443 dnat to [fd00:b05a:a4d::1]:6443"); dnat != (c.IPFamily == plan.IPv6) {
			t.Errorf("%s: the API server at [::1]: %t", c.IPFamily, dnat)
		}
	}
}
