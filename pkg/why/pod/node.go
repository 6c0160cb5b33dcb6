package pod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// nodeGone explains a pod whose node does not answer or does not exist: nothing else in the pod's status is new then.
func (q *inquiry) nodeGone(ctx context.Context) []why.Cause {
	name := q.pod.Spec.NodeName
	n, known := why.Get[corev1.Node](ctx, q.World, "", name)
	if n == nil {
		if !known {
			return nil
		}
		return []why.Cause{{Code: "NodeMissing",
			Text: fmt.Sprintf("Node %s, which the pod was assigned to, does not exist: no kubelet runs the pod.", name),
			Evidence: []why.Evidence{why.Absent("Node", "", name),
				why.See(q.self, ".spec.nodeName", name)},
			Fixes: []why.Fix{{Text: "Delete the pod, so that its controller makes another one.",
				Command: why.Command("kubectl delete pod %s%s --force", q.pod.Name, q.self.Flag())}}}}
	}
	node := why.ObjectOf("", "Node", n)
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady || c.Status == corev1.ConditionTrue {
			continue
		}
		cause := why.Cause{Code: "NodeNotReady",
			Text: fmt.Sprintf("Node %s, where the pod runs, has not been ready for %s.", name,
				q.since(c.LastTransitionTime.Time)),
			Evidence: []why.Evidence{why.Condition(node, string(c.Type), string(c.Status), c.Reason, c.Message,
				c.LastTransitionTime)}}
		if because, err := q.Causes(ctx, node); err == nil {
			cause.Because = because
		}
		return []why.Cause{cause}
	}
	return nil
}
