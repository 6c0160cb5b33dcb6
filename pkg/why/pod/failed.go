package pod

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// failed explains a pod of phase Failed. Such a pod is never run again, whatever becomes of the cause.
func (q *inquiry) failed(ctx context.Context) []why.Cause {
	s := &q.pod.Status
	seen := why.See(q.self, ".status.message", s.Message)
	switch s.Reason {
	case "Evicted":
		return []why.Cause{q.evicted(ctx, seen)}
	case "Preempting", "Preempted":
		return []why.Cause{{Code: "Preempted", Text: "The kubelet ended the pod to make room for a more important " +
			"one: " +
			why.Quote(s.Message) + ".", Evidence: []why.Evidence{seen}}}
	case "NodeAffinity", "OutOfcpu", "OutOfmemory", "OutOfpods", "OutOfephemeral-storage", "UnexpectedAdmissionError",
		"TopologyAffinityError", "PodOSNotSupported", "Sysctl", "SysctlForbidden", "AppArmor":
		return []why.Cause{{Code: "RefusedByNode",
			Text: fmt.Sprintf("The kubelet of node %s refused the pod (%s): %s. The pod does not get another node; "+
				"its controller makes a new pod.", q.pod.Spec.NodeName, s.Reason, why.Quote(s.Message)),
			Evidence: []why.Evidence{why.See(q.self, ".status.reason", s.Reason), seen}}}
	case "DeadlineExceeded":
		return []why.Cause{{Code: "DeadlineExceeded",
			Text:     "The pod ran longer than its activeDeadlineSeconds allows" + seconds(q.pod.Spec.ActiveDeadlineSeconds) + ".",
			Evidence: []why.Evidence{why.See(q.self, ".status.reason", s.Reason), seen}}}
	case "NodeShutdown", "Terminated", "Shutdown":
		return []why.Cause{{Code: "NodeShutdown",
			Text: fmt.Sprintf("Node %s was shut down, and ended the pod: %s.", q.pod.Spec.NodeName,
				why.Quote(s.Message)),
			Evidence: []why.Evidence{why.See(q.self, ".status.reason", s.Reason), seen}}}
	}
	if c := condition(q.pod, corev1.DisruptionTarget); c != nil && c.Status == corev1.ConditionTrue {
		return []why.Cause{{Code: "Disrupted", Text: fmt.Sprintf("The pod was ended on purpose (%s): %s.", c.Reason,
			why.Quote(c.Message)), Evidence: []why.Evidence{why.Condition(q.self, string(c.Type), string(c.Status),
			c.Reason, c.Message, c.LastTransitionTime)}}}
	}
	var causes []why.Cause
	for _, list := range []struct {
		what       string
		containers []corev1.Container
		statuses   []corev1.ContainerStatus
	}{
		{"init container", q.pod.Spec.InitContainers, s.InitContainerStatuses},
		{"container", q.pod.Spec.Containers, s.ContainerStatuses},
	} {
		for i := range list.containers {
			c := &list.containers[i]
			if cs := status(list.statuses, c.Name); cs != nil && cs.State.Terminated != nil &&
				cs.State.Terminated.ExitCode != 0 {
				causes = append(causes, q.ended(ctx, c, cs.State.Terminated, list.what, cs))
			}
		}
	}
	if len(causes) > 0 && q.pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		causes[0].Text += " Its restartPolicy is Never, so that one failure is the pod's."
	}
	return causes
}

// evicted explains a pod that a kubelet evicted for want of something.
func (q *inquiry) evicted(ctx context.Context, seen why.Evidence) why.Cause {
	message := q.pod.Status.Message
	cause := why.Cause{Code: "Evicted", Evidence: []why.Evidence{why.See(q.self, ".status.reason", "Evicted"), seen}}
	short := ""
	for _, r := range []string{"ephemeral-storage", "memory", "pids", "inodes", "imagefs", "nodefs"} {
		if strings.Contains(message, r) {
			short = r
			break
		}
	}
	switch {
	case strings.Contains(message, "exceeds the limit"), strings.Contains(message,
		"exceeded its local ephemeral storage limit"):
		cause.Code = "EvictedOverLimit"
		cause.Text = "The kubelet evicted the pod because it used more than its own limit: " + why.Quote(message) + "."
		cause.Fixes = []why.Fix{{Text: "Raise that limit, or write less."}}
	case short != "":
		cause.Text = fmt.Sprintf("The kubelet of node %s evicted the pod because the node ran low on %s: %s.",
			q.pod.Spec.NodeName, short, why.Quote(message))
		cause.Fixes = []why.Fix{{Text: fmt.Sprintf("Request as much %s as the pod uses: pods above their requests "+
			"are evicted first.", short)}}
	default:
		cause.Text = "The pod was evicted: " + why.Quote(message) + "."
	}
	if n, _ := why.Get[corev1.Node](ctx, q.World, "", q.pod.Spec.NodeName); n != nil {
		for _, c := range n.Status.Conditions {
			if strings.HasSuffix(string(c.Type), "Pressure") && c.Status == corev1.ConditionTrue {
				cause.Because = append(cause.Because, why.Cause{Code: string(c.Type),
					Text: fmt.Sprintf("Node %s still has %s.", n.Name, c.Type),
					Evidence: []why.Evidence{why.Condition(why.ObjectOf("", "Node", n), string(c.Type),
						string(c.Status), c.Reason, c.Message, c.LastTransitionTime)}})
			}
		}
	}
	return cause
}

func seconds(s *int64) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf(" (%d s)", *s)
}
