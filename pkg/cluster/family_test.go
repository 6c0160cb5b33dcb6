package cluster

import (
	"fmt"
	"strings"
	"testing"

	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
)

// TestFamilies: what components are told of the addresses of each family, the first one's first.
func TestFamilies(t *testing.T) {
	t.Parallel()
	for family, want := range map[plan.IPFamily][5]string{
		plan.IPv4: {"[10.77.0.1]", "10.77.0.12", "--cluster-cidr=10.244.0.0/16 --service-cluster-ip-range=10.96.0.0/16",
			"10.96.0.10", "https://127.0.0.1:6443"},
		plan.Dual: {"[10.77.0.1 fd00:b05a:a4d::1]", "10.77.0.12,fd00:b05a:a4d::c",
			"--cluster-cidr=10.244.0.0/16,fd00:b05b:af4::/64 --service-cluster-ip-range=10.96.0.0/16,fd00:b05c:a60::/108 --node-cidr-mask-size-ipv6=80", "10.96.0.10", "https://127.0.0.1:6443"},
		plan.IPv6: {"[fd00:b05a:a4d::1]", "fd00:b05a:a4d::c",
			"--cluster-cidr=fd00:b05b:af4::/64 --service-cluster-ip-range=fd00:b05c:a60::/108 --node-cidr-mask-size=80",
			"fd00:b05c:a60::a", "https://[::1]:6443"},
	} {
		c := plan.Default("/data", "/bin")
		c.IPFamily = family
		if err := c.Validate(); err != nil {
			t.Errorf("%q: %v", family, err)
		}
		var flags []string
		control := everyProcess(c)
		for _, p := range control {
			for _, flag := range p.Argv {
				name, _, _ := strings.Cut(flag, "=")
				if p.Name == "kube-controller-manager" &&
					(name == "--cluster-cidr" || name == "--service-cluster-ip-range" ||
						strings.HasPrefix(name, "--node-cidr")) {
					flags = append(flags, flag)
				}
			}
		}
		n := node.Of(c, plan.Node{Number: 2})
		got := [5]string{fmt.Sprint(c.Networks().HostIPs()), plan.CommaList(n.IPs()), strings.Join(flags, " "),
			c.Networks().DNSIP().String(), c.LocalServer()}
		if got != want {
			t.Errorf("%q:\n got %q\nwant %q", family, got, want)
		}
	}
}
