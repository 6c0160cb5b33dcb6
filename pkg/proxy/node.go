package proxy

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// NodeFacts is what a proxy needs of a corev1.Node.
type NodeFacts struct {
	Name, Zone string
	Addresses  []netip.Addr // the InternalIPs, else the ExternalIPs
	PodCIDRs   []netip.Prefix
	// Leaving is set while the node is being deleted: load balancers should send it nothing more.
	Leaving bool
}

// leavingTaint marks nodes that the cluster autoscaler is about to delete.
const leavingTaint = "ToBeDeletedByClusterAutoscaler"

// NodeOf extracts the facts of n.
func NodeOf(n *corev1.Node) NodeFacts {
	out := NodeFacts{Name: n.Name, Zone: n.Labels[corev1.LabelTopologyZone], Leaving: n.DeletionTimestamp != nil}
	for _, t := range n.Spec.Taints {
		out.Leaving = out.Leaving || t.Key == leavingTaint
	}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		var ips []string
		for _, a := range n.Status.Addresses {
			if a.Type == kind {
				ips = append(ips, a.Address)
			}
		}
		if out.Addresses = addresses(ips); len(out.Addresses) > 0 {
			break
		}
	}
	cidrs := n.Spec.PodCIDRs
	if len(cidrs) == 0 && n.Spec.PodCIDR != "" {
		cidrs = []string{n.Spec.PodCIDR}
	}
	for _, text := range cidrs {
		if p, err := netip.ParsePrefix(text); err == nil {
			out.PodCIDRs = append(out.PodCIDRs, p.Masked())
		}
	}
	return out
}

// Routes are the ways to other nodes' pods: pod CIDR to the node's address of the same family. The node itself, and nodes
// without addresses yet, have none. Who writes nodes rules over the pods' network alone: a pod CIDR outside of pods, if they have a
// prefix of its family, is ignored, as it could lead any traffic of this node elsewhere.
func Routes(nodes map[string]NodeFacts, self string, pods []netip.Prefix) map[netip.Prefix]netip.Addr {
	out := map[netip.Prefix]netip.Addr{}
	for name, n := range nodes {
		if name == self {
			continue
		}
		for _, cidr := range n.PodCIDRs {
			if gw := family(n.Addresses, cidr.Addr()); len(gw) > 0 && within(cidr, pods) {
				out[cidr] = gw[0]
			}
		}
	}
	return out
}

// within tells whether cidr lies in one of the ranges, or none of them is of its family.
func within(cidr netip.Prefix, ranges []netip.Prefix) bool {
	known := false
	for _, r := range ranges {
		if r.Addr().Is4() != cidr.Addr().Is4() {
			continue
		}
		if r.Contains(cidr.Addr()) && r.Bits() <= cidr.Bits() {
			return true
		}
		known = true
	}
	return !known
}
