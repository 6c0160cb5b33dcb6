// Package network is a node's part of the pod network, apart from what CNI plug-ins do for each pod: how the runtime
// calls them, the routes to other nodes' pods, and who may reach the node's own. Subpackages carry it out.
package network

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Name of an object.
type Name = types.NamespacedName

// nodeFacts is what the network needs of a corev1.Node.
type nodeFacts struct {
	Name      string
	Addresses []netip.Addr // the InternalIPs, else the ExternalIPs
	PodCIDRs  []netip.Prefix
}

// nodeOf extracts the facts of n.
func nodeOf(n *corev1.Node) nodeFacts {
	out := nodeFacts{Name: n.Name}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for _, a := range n.Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == kind {
				out.Addresses = append(out.Addresses, ip.Unmap())
			}
		}
		if len(out.Addresses) > 0 {
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

// routesOf returns the routes to other nodes' pods: pod CIDR to the node's address of the same family. The node itself,
// and nodes without addresses yet, have none. A user who may write nodes rules over the pods' network alone: a pod CIDR
// outside of pods, if they have a prefix of its family, is ignored, because it could lead any traffic of this node
// elsewhere.
func routesOf(nodes map[string]nodeFacts, self string, pods []netip.Prefix) map[netip.Prefix]netip.Addr {
	out := map[netip.Prefix]netip.Addr{}
	for name, n := range nodes {
		if name == self {
			continue
		}
		for _, cidr := range n.PodCIDRs {
			if gw, ok := sameFamily(n.Addresses, cidr); ok && within(cidr, pods) {
				out[cidr] = gw
			}
		}
	}
	return out
}

// sameFamily returns the first of all that is of the cidr's family.
func sameFamily(all []netip.Addr, cidr netip.Prefix) (netip.Addr, bool) {
	for _, a := range all {
		if a.Is4() == cidr.Addr().Is4() {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// within reports whether cidr lies in one of the ranges, or none of them is of its family.
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
