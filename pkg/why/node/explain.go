// Package node explains nodes: why one is not ready, or takes no pods.
package node

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// leases is the namespace of the Leases that kubelets renew.
const leases = "kube-node-lease"

// Explain explains a node.
func Explain(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	n, known := why.Get[corev1.Node](ctx, c.World, "", o.Name)
	if n == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf("", "Node", n)
	a := why.Answer{Subject: self}
	if n.DeletionTimestamp != nil {
		a.State = fmt.Sprintf("%s is being deleted.", self)
		var err error
		a.Causes, err = why.Finalizers(ctx, c, self, n)
		return a, err
	}
	ready := "Unknown"
	for i := range n.Status.Conditions {
		cond := &n.Status.Conditions[i]
		seen := why.Condition(self, string(cond.Type), string(cond.Status), cond.Reason, cond.Message,
			cond.LastTransitionTime)
		switch {
		case cond.Type == corev1.NodeReady:
			ready = string(cond.Status)
			if cond.Status != corev1.ConditionTrue {
				a.Causes = append([]why.Cause{notReady(ctx, c, n, cond, seen)}, a.Causes...)
			}
		case cond.Status == corev1.ConditionTrue && strings.HasSuffix(string(cond.Type), "Pressure"):
			a.Causes = append(a.Causes, why.Cause{Code: string(cond.Type),
				Text: fmt.Sprintf("The node has %s since %s: the kubelet evicts pods and takes no new ones that do "+
					"not tolerate it. It says: %s.", cond.Type, why.Span(c.Now.Sub(cond.LastTransitionTime.Time)),
					why.Quote(cond.Message)), Evidence: []why.Evidence{seen}})
		case cond.Status == corev1.ConditionTrue && cond.Type == corev1.NodeNetworkUnavailable:
			a.Causes = append(a.Causes, why.Cause{Code: "NetworkUnavailable",
				Text:     "The node's network is not set up: " + why.Quote(cond.Message) + ".",
				Evidence: []why.Evidence{seen}})
		}
	}
	if len(n.Status.Conditions) == 0 {
		a.Causes = append(a.Causes, why.Cause{Code: "NeverReported",
			Text:     "The node's kubelet has never reported its status.",
			Evidence: []why.Evidence{why.See(self, ".status.conditions", "empty")}})
	}
	if n.Spec.Unschedulable {
		a.Causes = append(a.Causes, why.Cause{Code: "Cordoned", Text: "The node is cordoned: it gets no new pods.",
			Evidence: []why.Evidence{why.See(self, ".spec.unschedulable", "true")},
			Fixes:    []why.Fix{{Text: "Let it take pods again.", Command: "kubectl uncordon " + why.Word(n.Name)}}})
	}
	for _, t := range n.Spec.Taints {
		if strings.HasPrefix(t.Key, "node.kubernetes.io/") || t.Effect == corev1.TaintEffectPreferNoSchedule {
			continue // they follow from what has been said
		}
		a.Causes = append(a.Causes, tainted(ctx, c, self, n, &t))
	}
	switch {
	case ready != string(corev1.ConditionTrue):
		a.State = fmt.Sprintf("%s is not ready.", self)
	case len(a.Causes) > 0:
		a.State = fmt.Sprintf("%s is ready, but does not take every pod.", self)
	default:
		a.State, a.Well = fmt.Sprintf("%s is ready and takes pods.", self), true
	}
	return a, nil
}

// notReady explains a node that says that it is not ready, or that nothing is heard of.
func notReady(ctx context.Context, c *why.Case, n *corev1.Node, cond *corev1.NodeCondition,
	seen why.Evidence) why.Cause {
	since := why.Span(c.Now.Sub(cond.LastTransitionTime.Time))
	if cond.Status == corev1.ConditionFalse {
		cause := why.Cause{Code: "KubeletNotReady", Text: fmt.Sprintf("The kubelet runs and says that the node has "+
			"not been ready for %s: %s.", since, why.Quote(cond.Message)), Evidence: []why.Evidence{seen}}
		switch {
		case strings.Contains(cond.Message, "cni") || strings.Contains(cond.Message, "network plugin"):
			cause.Code = "NetworkPluginNotReady"
			cause.Fixes = []why.Fix{{Text: "Install the network plug-in on the node, or look at its pods' logs."}}
		case strings.Contains(cond.Message, "shutting down"):
			cause.Code = "NodeShutdown"
		case strings.Contains(cond.Message, "runtime"):
			cause.Code = "RuntimeNotReady"
			cause.Fixes = []why.Fix{{Text: "Look at the container runtime on the node."}}
		}
		return cause
	}
	cause := why.Cause{Code: "KubeletSilent",
		Text: fmt.Sprintf("Nothing has been heard of the node's kubelet for %s: the machine is off or cut off, or "+
			"its kubelet does not run.", why.Span(c.Now.Sub(cond.LastHeartbeatTime.Time))),
		Evidence: []why.Evidence{seen},
		Fixes: []why.Fix{{Text: "Look at the machine: is it on, does it reach the API server, does the kubelet run " +
			"there?"}}}
	if l, _ := why.Get[coordinationv1.Lease](ctx, c.World, leases, n.Name); l != nil && l.Spec.RenewTime != nil {
		lease := why.ObjectOf("coordination.k8s.io", "Lease", l)
		at := l.Spec.RenewTime.Time
		cause.Evidence = append(cause.Evidence, why.Evidence{Object: lease, Field: ".spec.renewTime",
			Value: at.UTC().Format("2006-01-02T15:04:05Z"), Time: &at})
	}
	return cause
}
