package kernel

// Needs returns the features that this machine's part of a cluster uses, in the order in which they build on each
// other. overlay: images are kept on overlay file systems. iptables are the programs that write rules of iptables for
// the cluster's address families.
func Needs(overlay bool, iptables []string) []Group {
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
	return groups
}
