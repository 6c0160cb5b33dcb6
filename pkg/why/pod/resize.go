package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// resizing explains a pod whose resources are to change in place and have not.
func (q *inquiry) resizing() (causes []why.Cause) {
	for i := range q.pod.Status.Conditions {
		c := &q.pod.Status.Conditions[i]
		if c.Status != corev1.ConditionTrue ||
			c.Type != corev1.PodResizePending && c.Type != corev1.PodResizeInProgress {
			continue
		}
		cause := why.Cause{Code: string(c.Type), Evidence: []why.Evidence{why.Condition(q.self, string(c.Type),
			string(c.Status), c.Reason, c.Message, c.LastTransitionTime)}}
		switch {
		case c.Type == corev1.PodResizeInProgress && c.Reason == "":
			cause.Text = fmt.Sprintf("The kubelet has been resizing the pod for %s.",
				q.since(c.LastTransitionTime.Time))
		case c.Type == corev1.PodResizeInProgress:
			cause.Text = fmt.Sprintf("The kubelet cannot carry out the resize of the pod (%s): %s.", c.Reason,
				why.Quote(c.Message))
		case c.Reason == corev1.PodReasonInfeasible:
			cause.Text = fmt.Sprintf("Node %s can never give the pod what the resize asks for: %s.",
				q.pod.Spec.NodeName,
				why.Quote(c.Message))
		default:
			cause.Text = fmt.Sprintf("The resize of the pod waits for room on node %s: %s.", q.pod.Spec.NodeName,
				why.Quote(c.Message))
		}
		causes = append(causes, cause)
	}
	return causes
}
