package proxy

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// nodeFacts is what a proxy needs of a corev1.Node.
type nodeFacts struct {
	Name, Zone string
	Addresses  []netip.Addr // the InternalIPs, else the ExternalIPs
	All        []netip.Addr // of every type
	// Leaving is set while the node is being deleted: load balancers should send it nothing more.
	Leaving bool
}

// leavingTaint marks nodes that the cluster autoscaler is about to delete.
const leavingTaint = "ToBeDeletedByClusterAutoscaler"

// nodeOf extracts the facts of n.
func nodeOf(n *corev1.Node) nodeFacts {
	out := nodeFacts{Name: n.Name, Zone: n.Labels[corev1.LabelTopologyZone], Leaving: n.DeletionTimestamp != nil}
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
		if len(out.Addresses) == 0 {
			out.Addresses = addresses(ips)
		}
	}
	var all []string
	for _, a := range n.Status.Addresses {
		all = append(all, a.Address)
	}
	out.All = addresses(all)
	return out
}
