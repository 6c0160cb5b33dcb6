package node

import (
	"encoding/json"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// What a kubelet with an external cloud provider and the provider's controller manager tell each other on the Node
// (https://kubernetes.io/docs/tasks/administer-cluster/running-cloud-controller/).
const (
	// uninitialized is the taint of a new Node; the cloud controller manager removes it.
	uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
	// providedIP is the annotation with the addresses of --node-ip, separated by commas.
	providedIP = "alpha.kubernetes.io/provided-node-ip"
)

// cloudTaints adds to the taints of a new Node the one that keeps pods away until the cloud provider has initialized
// it.
func (n *Node) cloudTaints() []corev1.Taint {
	taint := corev1.Taint{Key: uninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule}
	if !n.cfg.ExternalCloud || slices.ContainsFunc(n.cfg.Taints, func(t corev1.Taint) bool {
		return t.MatchTaint(&taint)
	}) {
		return n.cfg.Taints
	}
	return append(slices.Clone(n.cfg.Taints), taint)
}

// provided is the value of the annotation providedIP, "" for none.
func (n *Node) provided() string {
	if !n.cfg.ExternalCloud || slices.ContainsFunc(n.cfg.IPs, net.IP.IsUnspecified) {
		return ""
	}
	var out []string
	for _, ip := range n.cfg.IPs {
		out = append(out, ip.String())
	}
	return strings.Join(out, ",")
}

// annotationPatch returns the changes, as of a merge patch, that give an existing Node the annotations that are the
// kubelet's.
func annotationPatch(have, want map[string]string, external bool) map[string]any {
	out := map[string]any{}
	if v := want[managedAttachment]; have[managedAttachment] != v {
		out[managedAttachment] = v
	}
	if !external {
		return out
	}
	switch v, ok := want[providedIP]; {
	case ok && have[providedIP] != v:
		out[providedIP] = v
	case !ok && have[providedIP] != "":
		out[providedIP] = json.RawMessage("null") // --node-ip is gone
	}
	return out
}
