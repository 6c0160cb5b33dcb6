package pod

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// leaving explains a pod that is ready and will not stay: its node's taint is tolerated for a time only, or it may run
// for a time only. A workload that makes such pods again and again looks well in between.
func leaving(ctx context.Context, q *inquiry) (causes []why.Cause) {
	if s := q.pod.Spec.ActiveDeadlineSeconds; s != nil && q.pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		causes = append(causes, why.Cause{Code: "DeadlineSet",
			Text: fmt.Sprintf("The kubelet ends the pod %s after its start: its activeDeadlineSeconds is %d.",
				why.Span(time.Duration(*s)*time.Second), *s),
			Evidence: []why.Evidence{why.See(q.self, ".spec.activeDeadlineSeconds", fmt.Sprint(*s))},
			Fixes:    []why.Fix{{Text: "Leave activeDeadlineSeconds out of pods that are to run forever."}}})
	}
	n, _ := why.Get[corev1.Node](ctx, q.World, "", q.pod.Spec.NodeName)
	if n == nil {
		return causes
	}
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		seconds, forever := tolerates(q.pod.Spec.Tolerations, t)
		if t.Effect != corev1.TaintEffectNoExecute || forever {
			continue
		}
		node := why.ObjectOf("", "Node", n)
		causes = append(causes, why.Cause{Code: "TaintToleratedForSeconds",
			Text: fmt.Sprintf("Node %s has the taint %s, which the pod tolerates for %d s only (tolerationSeconds): then it "+
				"is evicted. The scheduler counts the taint as tolerated, and may place the next pod there again.",
				n.Name, t.ToString(), seconds),
			Evidence: []why.Evidence{why.See(node, fmt.Sprintf(`.spec.taints[?(@.key=="%s")]`, t.Key), t.ToString()),
				why.See(q.self, fmt.Sprintf(`.spec.tolerations[?(@.key=="%s")].tolerationSeconds`, t.Key),
					fmt.Sprint(seconds))},
			Fixes: []why.Fix{{Text: "Let the pods tolerate the taint without tolerationSeconds, or not at all: they then " +
				"stay, or go to other nodes."}, {Text: "Remove the taint, if the node is to take pods again.",
				Command: why.Command("kubectl taint nodes %s %s", n.Name, t.ToString()+"-")}}})
	}
	return causes
}

// tolerates returns for how long tolerations tolerate a taint; forever if nothing bounds it.
func tolerates(list []corev1.Toleration, t *corev1.Taint) (seconds int64, forever bool) {
	least := int64(-1)
	for i := range list {
		o := &list[i]
		if o.Effect != "" && o.Effect != t.Effect || o.Key != t.Key && o.Key != "" ||
			o.Operator != corev1.TolerationOpExists && (o.Key == "" || o.Value != t.Value) {
			continue
		}
		switch {
		case o.TolerationSeconds == nil:
			continue
		case least < 0 || *o.TolerationSeconds < least:
			least = max(*o.TolerationSeconds, 0)
		}
	}
	return max(least, 0), least < 0
}
