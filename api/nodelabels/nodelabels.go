// Package nodelabels says which labels a kubelet may give its own Node. The kubelet, NodeRestriction and whoever starts
// kubelets must agree: one refused label refuses the whole Node.
package nodelabels

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// OwnPrefixes are set aside for kubelets. A kubelet may set any label of these domains and of those within them.
func OwnPrefixes() []string { return []string{"kubelet.kubernetes.io", "node.kubernetes.io"} }

// Own are the labels of Kubernetes' domains that a kubelet may set, sorted: they describe the node. Labels with one of
// OwnPrefixes come on top.
func Own() []string {
	return []string{
		"beta.kubernetes.io/arch", corev1.LabelInstanceType, "beta.kubernetes.io/os",
		corev1.LabelFailureDomainBetaRegion, corev1.LabelFailureDomainBetaZone,
		corev1.LabelArchStable, corev1.LabelHostname, corev1.LabelOSStable,
		corev1.LabelInstanceTypeStable, corev1.LabelTopologyRegion, corev1.LabelTopologyZone,
	}
}

// MayRegister reports whether a kubelet may give its own Node a label. Labels within kubernetes.io and k8s.io say what
// a node is for (node-role.kubernetes.io/control-plane, node-restriction.kubernetes.io/…), which is not the node's
// choice, except for Own and OwnPrefixes.
func MayRegister(label string) bool {
	prefix, _, prefixed := strings.Cut(label, "/")
	within := func(domain string) bool { return prefix == domain || strings.HasSuffix(prefix, "."+domain) }
	if !prefixed || !within("kubernetes.io") && !within("k8s.io") {
		return true
	}
	return slices.ContainsFunc(OwnPrefixes(), within) || slices.Contains(Own(), label)
}
