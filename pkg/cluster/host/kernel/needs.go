package kernel

import (
	"context"
	"strings"

	"bonsai/pkg/cluster/host"
)

// Needs returns the features that this machine's part of a cluster uses, in the order in which they build on each
// other. overlay: images are kept on overlay file systems. iptables are the programs that write rules of iptables for
// the cluster's address families. scheduler is that of Services in IPVS, "" where they are not.
func Needs(overlay bool, iptables []string, scheduler string) []Group {
	var groups []Group
	if overlay {
		groups = append(groups, single(Feature{"overlay", "CONFIG_OVERLAY_FS", "images", hasFileSystem("overlay")}))
	}
	groups = append(groups, tried(lines{lines: linkLines[:]}, "ip", "-batch", "-")...)
	groups = append(groups,
		single(Feature{"br_netfilter", "CONFIG_BRIDGE_NETFILTER", "Services between pods of one node",
			hasSetting("net/bridge/bridge-nf-call-iptables")}),
		single(Feature{"nf_conntrack", "CONFIG_NF_CONNTRACK", "Services", hasSetting("net/netfilter/nf_conntrack_max")}))
	groups = append(groups, tried(lines{before: nftBefore, lines: nftLines[:], after: nftAfter}, "nft", "-f", "-")...)
	for _, program := range iptables {
		groups = append(groups,
			tried(lines{before: iptablesBefore, lines: iptablesLines[:], after: iptablesAfter}, program, "-w")...)
	}
	if scheduler != "" {
		groups = append(groups, ipvs(scheduler))
	}
	return groups
}

// ipvs returns the features of virtual servers with a scheduler. The kernel shows no trace of a scheduler that is built
// in, so modprobe is asked.
func ipvs(scheduler string) Group {
	module := "ip_vs_" + scheduler
	servers := Feature{"ip_vs", "CONFIG_IP_VS", "Services in IPVS (--proxy-mode=ipvs)",
		hasSetting("net/ipv4/vs/conntrack")}
	schedules := Feature{module, "CONFIG_IP_VS_" + strings.ToUpper(scheduler), "Services in IPVS (--proxy-mode=ipvs)",
		func(ctx context.Context) error { return host.Run(ctx, "", "modprobe", module) }}
	all := func(ctx context.Context) error {
		if err := servers.try(ctx); err != nil {
			return err
		}
		return schedules.try(ctx)
	}
	return Group{all: all, features: []Feature{servers, schedules}}
}
