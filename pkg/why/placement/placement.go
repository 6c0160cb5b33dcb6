// Package placement explains where pods run: why one waits for a node, and why one runs on the node that it has. The
// scheduler's own plug-ins decide on a copy of the cluster (package simulate), and changes that help are found by
// trying them there.
package placement

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/why"
	"bonsai/pkg/why/simulate"
)

// Explain implements why.Explainer for pods that exist and have not ended.
func Explain(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	p, known := why.Get[corev1.Pod](ctx, c.World, o.Namespace, o.Name)
	if p == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	q := &inquiry{Case: c, pod: p, self: why.ObjectOf("", "Pod", p)}
	if p.Spec.NodeName != "" {
		return q.here(ctx)
	}
	return q.waiting(ctx)
}

// inquiry is one question about one pod.
type inquiry struct {
	*why.Case
	pod  *corev1.Pod
	self why.Object
}

// scheduled returns the condition by which schedulers say what they think of a pod, nil if none has said anything.
func (q *inquiry) scheduled() *corev1.PodCondition {
	for i := range q.pod.Status.Conditions {
		if q.pod.Status.Conditions[i].Type == corev1.PodScheduled {
			return &q.pod.Status.Conditions[i]
		}
	}
	return nil
}

// waiting explains a pod without a node.
func (q *inquiry) waiting(ctx context.Context) (why.Answer, error) {
	a := why.Answer{Subject: q.self, State: fmt.Sprintf("%s has been pending for %s and has no node.", q.self,
		why.Span(q.Now.Sub(q.pod.CreationTimestamp.Time)))}
	if len(q.pod.Spec.SchedulingGates) > 0 {
		a.Causes = []why.Cause{q.gated()}
		return a, nil
	}
	cluster, err := simulate.Read(ctx, q.World, q.Now, q.pod)
	if err != nil {
		return why.Answer{}, err
	}
	silent := q.silent(ctx)
	if !cluster.Complete {
		a.Causes = append(silent, q.quoted()...)
		return a, nil
	}
	info := simulate.Info(q.pod)
	if info.Err != nil {
		a.Causes = []why.Cause{{Code: "InvalidPod", Text: "The scheduler cannot read the pod's rules: " +
			why.Quote(info.Err.Error()) + "."}}
		return a, nil
	}
	if st := cluster.Gate(info); !st.IsSuccess() {
		a.Causes = []why.Cause{q.refused(ctx, st)}
		return a, nil
	}
	decided, diagnosis, err := cluster.Decide(ctx, info)
	switch {
	case err != nil:
		a.Causes = []why.Cause{{Code: "SchedulerError", Text: "The scheduler's plug-ins fail on this pod: " +
			why.Quote(err.Error()) + "."}}
	case diagnosis == nil:
		a.Causes = q.fits(silent, decided.Node)
	case cluster.Snapshot.Count == 0:
		a.Causes = []why.Cause{{Code: "NoNodes", Text: "The cluster has no nodes.", Evidence: q.said(),
			Fixes: []why.Fix{{Text: "Add a node."}}}}
	default:
		a.Causes = append(q.preempting(ctx), q.nowhere(ctx, cluster, info)...)
		a.Causes = append(below(a.Causes, q.eviction(ctx, cluster, info)), silent...)
		a.Causes = q.compared(a.Causes, diagnosis.Message())
	}
	return a, nil
}

// gated explains a pod that somebody holds back.
func (q *inquiry) gated() why.Cause {
	var names []string
	for _, g := range q.pod.Spec.SchedulingGates {
		names = append(names, g.Name)
	}
	text := fmt.Sprintf("The pod has the %s %s: no scheduler looks at it before whoever set them removes them.",
		strings.TrimPrefix(why.Count(len(names), "scheduling gate"), "1 "), why.And(names))
	if m := q.manager("f:schedulingGates"); m != "" {
		text += fmt.Sprintf(" They were written by %s.", why.Quote(m))
	}
	self := owner{kind: "Pod", namespace: q.pod.Namespace, name: q.pod.Name, resource: "pod", prefix: "/spec"}
	return why.Cause{Code: "SchedulingGated", Text: text,
		Evidence: []why.Evidence{why.See(q.self, ".spec.schedulingGates[*].name", strings.Join(names, " "))},
		Fixes: []why.Fix{{Text: "Look at that controller: does it run, and what does it wait for?"},
			{Text: "Remove the gates by hand, if no controller will.",
				Command: self.patch(operation{Op: "remove", Path: "/schedulingGates"})}}}
}

// manager returns who wrote a field of the pod's spec, "" if nothing says it.
func (q *inquiry) manager(field string) string {
	for _, m := range q.pod.ManagedFields {
		if m.FieldsV1 != nil && strings.Contains(string(m.FieldsV1.Raw), `"`+field+`"`) {
			return m.Manager
		}
	}
	return ""
}

// preempting explains a pod for which room is being made.
func (q *inquiry) preempting(ctx context.Context) []why.Cause {
	node := q.pod.Status.NominatedNodeName
	if node == "" {
		return nil
	}
	cause := why.Cause{Code: "Preempting",
		Evidence: []why.Evidence{why.See(q.self, ".status.nominatedNodeName", node)}}
	pods, _ := why.List[corev1.Pod](ctx, q.World, "", nil)
	var ending []string
	for _, p := range pods {
		if p.Spec.NodeName != node || p.DeletionTimestamp == nil || model.Priority(p) >= model.Priority(q.pod) {
			continue
		}
		o := why.ObjectOf("", "Pod", p)
		// The timestamp is the end of the grace period.
		if left := p.DeletionTimestamp.Sub(q.Now); left > 0 {
			ending = append(ending, fmt.Sprintf("%s, whose grace period ends in %s", p.Name, why.Span(left)))
		} else {
			ending = append(ending, fmt.Sprintf("%s, whose grace period is over", p.Name))
		}
		cause.Evidence = append(cause.Evidence, why.See(o, ".metadata.deletionTimestamp",
			p.DeletionTimestamp.UTC().Format(time.RFC3339), *p.DeletionTimestamp))
		because, err := q.Causes(ctx, o)
		if err == nil {
			cause.Because = append(cause.Because, because...)
		}
	}
	if len(ending) == 0 { // the room is there, or somebody else took it
		return nil
	}
	cause.Text = fmt.Sprintf("The scheduler makes room for the pod on node %s: pods of lower priority end there, and it "+
		"waits until they are gone: %s.", node, why.And(ending))
	return []why.Cause{cause}
}

// fits explains a pod that has no node although one would take it.
func (q *inquiry) fits(silent []why.Cause, node string) []why.Cause {
	if len(silent) > 0 {
		return silent
	}
	cause := why.Cause{Code: "SchedulerHasNotTried", Evidence: q.said(),
		Text: fmt.Sprintf("The pod fits on node %s now, by the rules of the default scheduler. ", node)}
	cond := q.scheduled()
	switch {
	case cond == nil:
		cause.Text += "Its scheduler has not looked at it yet."
	case cond.Reason == corev1.PodReasonSchedulerError:
		cause.Code = "SchedulerError"
		cause.Text = "The scheduler failed when it looked at the pod: " + why.Quote(cond.Message) + "."
	default:
		cause.Text += "Its scheduler sees it differently, or has not tried again since something changed. It said: " +
			why.Quote(cond.Message) + "."
	}
	return []why.Cause{cause}
}
