package main

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/cmd/internal/netnstest"
	"bonsai/pkg/nftables"
	"bonsai/pkg/proxy"
	"bonsai/pkg/proxy/ipvs"
)

// noIPVS stands for the virtual servers of a kernel that has none.
type noIPVS struct{}

func (noIPVS) Servers() (map[ipvs.Key]ipvs.Server, error)             { return nil, nil }
func (noIPVS) CreateServer(ipvs.Key, ipvs.Server) error               { return nil }
func (noIPVS) UpdateServer(ipvs.Key, ipvs.Server) error               { return nil }
func (noIPVS) RemoveServer(ipvs.Key) error                            { return nil }
func (noIPVS) Reals(ipvs.Key) (map[netip.AddrPort]ipvs.Real, error)   { return nil, nil }
func (noIPVS) CreateReal(ipvs.Key, netip.AddrPort, uint32) error      { return nil }
func (noIPVS) UpdateReal(ipvs.Key, netip.AddrPort, uint32) error      { return nil }
func (noIPVS) RemoveReal(ipvs.Key, netip.AddrPort) error              { return nil }
func (noIPVS) Addresses() (onLink, elsewhere []netip.Addr, err error) { return nil, nil, nil }
func (noIPVS) Bind(netip.Addr) error                                  { return nil }
func (noIPVS) Unbind(netip.Addr) error                                { return nil }

// TestIPVSRulesInKernel: the kernel takes the packet rules of the ipvs mode, of both families, also where it has no
// IPVS.
func TestIPVSRulesInKernel(t *testing.T) {
	t.Parallel()
	node := netnstest.New(t, "node")
	for _, c := range []struct {
		six                             bool
		family, pods, services, outside string
	}{{false, "ip", "10.244.0.0/16", "10.96.0.0/16", "203.0.113.1"},
		{true, "ip6", "fd00:10::/48", "fd00:96::/112", "2001:db8::1"}} {
		services := netip.MustParsePrefix(c.services)
		endpoint := netip.AddrPortFrom(netip.MustParsePrefix(c.pods).Addr().Next(), 80)
		p := proxy.Port{Service: proxy.Name{Namespace: "default", Name: "web"}, Protocol: corev1.ProtocolSCTP,
			ClusterIP: services.Addr().Next(), Number: 80, NodePort: 30080, ExternalLocal: true, Anywhere: true,
			LoadBalancerIPs: []netip.Addr{netip.MustParseAddr(c.outside)},
			SourceRanges:    []netip.Prefix{netip.MustParsePrefix(c.pods)},
			Cluster:         []netip.AddrPort{endpoint}, Here: []netip.AddrPort{endpoint}}
		none := proxy.Port{Service: proxy.Name{Namespace: "default", Name: "none"}, Protocol: corev1.ProtocolUDP,
			ClusterIP: services.Addr().Next().Next(), Number: 53}
		for _, pods := range []string{"", "cni0"} {
			node.Do(func() {
				tool, err := nftables.Open(c.six, "kube-proxy-ipvs")
				if err != nil {
					t.Error(err)
					return
				}
				table := ipvs.New(noIPVS{}, tool, c.six, ipvs.Config{Scheduler: "rr", PodInterface: pods,
					ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix(c.pods)}, Now: time.Now,
					NodePorts: func([]netip.Addr) ([]netip.Addr, error) {
						return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::2")}, nil
					}}, slog.New(slog.DiscardHandler))
				if err := table.Apply(t.Context(), proxy.Update{ServiceCIDRs: []netip.Prefix{services},
					Services: map[proxy.Name][]proxy.Port{p.Service: {p}, none.Service: {none}}}); err != nil {
					t.Error(err)
				}
			})
		}
		rules := node.Run("nft", "list", "table", c.family, "kube-proxy-ipvs")
		for _, want := range []string{c.outside + " . sctp . 80 : jump firewall-", "jump drop-outsiders",
			"jump reject-all", `iifname != "cni0"`} {
			if !strings.Contains(rules, want) {
				t.Errorf("no %q in\n%s", want, rules)
			}
		}
	}
}
