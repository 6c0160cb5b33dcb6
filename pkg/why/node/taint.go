package node

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// waiting are taints that a program removes when it has done its part for a node: nobody is to remove them by hand
// while it may still come. The keys are those of programs that many clusters run.
var waiting = []struct{ key, code, text, pods, fix string }{
	{"node.cloudprovider.kubernetes.io/uninitialized", "NodeUninitialized",
		"its kubelet runs with an external cloud provider, and waits for a cloud controller manager to initialize the node",
		"cloud-controller-manager", "Run the cloud controller manager of the node's cloud, or look at its logs."},
	{"node.cilium.io/agent-not-ready", "NetworkAgentNotReady", "the agent of its pod network is not ready there", "cilium",
		"Look at the agent's pod on the node."},
	{"ebs.csi.aws.com/agent-not-ready", "StorageAgentNotReady", "the agent of its storage driver is not ready there",
		"ebs-csi-node", "Look at the agent's pod on the node."},
	{"efs.csi.aws.com/agent-not-ready", "StorageAgentNotReady", "the agent of its storage driver is not ready there",
		"efs-csi-node", "Look at the agent's pod on the node."},
	{"karpenter.sh/unregistered", "NodeUnregistered", "the provisioner that made it has not registered it", "karpenter",
		"Look at the provisioner's logs."},
	{"karpenter.sh/disrupted", "NodeBeingRemoved", "its provisioner is about to remove it", "karpenter",
		"Wait for other nodes, or look at why the provisioner removes it."},
	{"ToBeDeletedByClusterAutoscaler", "NodeBeingRemoved", "the cluster autoscaler is about to remove it",
		"cluster-autoscaler", "Wait for other nodes, or look at why the autoscaler removes it."},
}

// tainted explains a taint of a node: one that somebody set to keep pods away, or one that a program has not removed
// yet.
func tainted(ctx context.Context, c *why.Case, self why.Object, n *corev1.Node, t *corev1.Taint) why.Cause {
	seen := why.See(self, ".spec.taints", t.ToString())
	if t.TimeAdded != nil {
		seen.Time = &t.TimeAdded.Time
	}
	remove := why.Command("kubectl taint nodes %s %s", n.Name, t.ToString()+"-")
	for _, w := range waiting {
		if w.key != t.Key {
			continue
		}
		cause := why.Cause{Code: w.code, Text: fmt.Sprintf("The node takes no pods that do not tolerate the taint %s: %s.",
			t.ToString(), w.text), Evidence: []why.Evidence{seen}, Fixes: []why.Fix{{Text: w.fix}, {
			Text: "Remove the taint by hand only if that program will never come.", Command: remove}}}
		pods, complete := why.List[corev1.Pod](ctx, c.World, "", nil)
		running := ""
		for _, p := range pods {
			if strings.Contains(p.Name, w.pods) && p.Status.Phase == corev1.PodRunning {
				running = p.Namespace + "/" + p.Name
			}
		}
		switch {
		case running != "":
			cause.Because = []why.Cause{{Code: "ControllerRuns",
				Text: fmt.Sprintf("Pod %s runs: its logs may say why it has not removed the taint.", running)}}
		case complete:
			cause.Because = []why.Cause{{Code: "ControllerNotFound",
				Text: fmt.Sprintf("No running pod is named like that program (%s).", w.pods)}}
		}
		return cause
	}
	return why.Cause{Code: "Tainted",
		Text:     fmt.Sprintf("The node has the taint %s: it takes only pods that tolerate it.", t.ToString()),
		Evidence: []why.Evidence{seen}, Fixes: []why.Fix{{Text: "Remove the taint.", Command: remove}}}
}
