package pod

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// terminating explains a pod that somebody has deleted and that is still there.
func (q *inquiry) terminating(ctx context.Context) []why.Cause {
	overdue := q.Now.Sub(q.pod.DeletionTimestamp.Time)
	if q.pod.Spec.NodeName != "" {
		if causes := q.nodeGone(ctx); len(causes) > 0 {
			for i := range causes {
				causes[i].Text += " Only its kubelet can say that the pod's containers have ended."
				causes[i].Fixes = append(causes[i].Fixes, why.Fix{
					Text: "If the machine is really off, remove the pod without waiting for the kubelet.",
					Command: why.Command("kubectl delete pod %s%s --force --grace-period=0", q.pod.Name,
						q.self.Flag())})
			}
			return causes
		}
	}
	running := q.running()
	if len(running) == 0 && len(q.pod.Finalizers) > 0 {
		return q.finalizers(ctx)
	}
	var causes []why.Cause
	if overdue < 0 && len(running) > 0 {
		cause := why.Cause{Code: "GracePeriod",
			Text: fmt.Sprintf("%s still running, and may take %s more: the grace period is %s.",
				plural(running), why.Span(-overdue), why.Span(q.grace())),
			Evidence: []why.Evidence{why.SeeDeleted(q.self, q.pod)}}
		for i := range q.pod.Spec.Containers {
			c := &q.pod.Spec.Containers[i]
			if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
				cause.Text += fmt.Sprintf(" Container %s has a preStop hook, which must end first.", c.Name)
				cause.Evidence = append(cause.Evidence, why.See(q.self,
					fmt.Sprintf(`.spec.containers[?(@.name=="%s")].lifecycle.preStop`, c.Name), "is set"))
			}
		}
		if e := q.event("FailedPreStopHook"); e != nil {
			cause.Evidence = append(cause.Evidence, why.SeeEvent(e))
		}
		cause.Text += " A program that does not end at SIGTERM is killed when the period is over."
		cause.Fixes = []why.Fix{{Text: "End it now.", Command: why.Command("kubectl delete pod %s%s --grace-period=1",
			q.pod.Name, q.self.Flag())}}
		return []why.Cause{cause}
	}
	if len(running) > 0 {
		cause := why.Cause{Code: "ContainersStillRunning",
			Text: fmt.Sprintf("%s still running %s after the grace period has ended. The runtime has not been able "+
				"to kill them.", plural(running), why.Span(overdue)),
			Evidence: []why.Evidence{why.See(q.self, ".status.containerStatuses[*].state", "running")}}
		if e := q.event("FailedKillPod", "KillContainerError"); e != nil {
			cause.Text += " The kubelet says: " + why.Quote(e.Message) + "."
			cause.Evidence = append(cause.Evidence, why.SeeEvent(e))
		}
		causes = append(causes, cause)
	}
	return append(causes, q.finalizers(ctx)...)
}

// finalizers explains a pod that only finalizers keep.
func (q *inquiry) finalizers(ctx context.Context) []why.Cause {
	if len(q.pod.Finalizers) == 0 {
		return nil
	}
	causes, err := why.Finalizers(ctx, q.Case, q.self, q.pod)
	if err != nil {
		return nil
	}
	return causes
}

// running are the names of the containers that have not ended.
func (q *inquiry) running() (names []string) {
	for _, list := range [][]corev1.ContainerStatus{q.pod.Status.InitContainerStatuses,
		q.pod.Status.ContainerStatuses} {
		for _, s := range list {
			if s.State.Running != nil {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

func (q *inquiry) grace() time.Duration {
	if s := q.pod.DeletionGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 0
}

func plural(names []string) string {
	if len(names) == 1 {
		return "Container " + names[0] + " is"
	}
	return "Containers " + why.And(names) + " are"
}
