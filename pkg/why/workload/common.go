// Package workload explains what makes pods: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs and
// HorizontalPodAutoscalers. It says which pods are missing and why they could not be made; why a pod is as it is, the
// explainer of pods says.
package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/why"
)

// maxPods is how many pods of a workload are asked for their causes; the others are alike in practice.
const maxPods = 10

// going answers about a workload that is being deleted.
func going(ctx context.Context, c *why.Case, self why.Object, m metav1.Object) (why.Answer, error) {
	causes, err := why.Finalizers(ctx, c, self, m)
	return why.Answer{Subject: self, Causes: causes, State: fmt.Sprintf("%s has been terminating for %s.", self,
		why.Span(c.Now.Sub(m.GetDeletionTimestamp().Time)))}, err
}

// unobserved explains a workload whose controller has not seen its newest spec; nil if it has.
func unobserved(c *why.Case, self why.Object, m metav1.Object, observed int64) []why.Cause {
	if observed >= m.GetGeneration() {
		return nil
	}
	return []why.Cause{{Code: "NotObserved",
		Text: fmt.Sprintf("The controller has not seen the newest spec (generation %d, seen %d). Does "+
			"kube-controller-manager run?", m.GetGeneration(), observed),
		Evidence: []why.Evidence{why.See(self, ".status.observedGeneration", fmt.Sprint(observed)),
			why.See(self, ".metadata.generation", fmt.Sprint(m.GetGeneration()))}}}
}

// podsOf returns the pods that an object controls.
func podsOf(ctx context.Context, c *why.Case, namespace string, uid types.UID) (pods []*corev1.Pod) {
	all, _ := why.List[corev1.Pod](ctx, c.World, namespace, nil)
	for _, p := range all {
		if o := metav1.GetControllerOf(p); o != nil && o.UID == uid {
			pods = append(pods, p)
		}
	}
	return pods
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// notReady explains the pods that are not ready, alike ones together, the most frequent cause first.
func notReady(ctx context.Context, c *why.Case, pods []*corev1.Pod) ([]why.Cause, error) {
	type group struct {
		names []string
		first why.Object
		cause why.Cause
	}
	var groups []*group
	asked := 0
	for _, p := range pods {
		if ready(p) || p.Status.Phase == corev1.PodSucceeded || p.DeletionTimestamp != nil {
			continue
		}
		if asked++; asked > maxPods {
			break
		}
		o := why.ObjectOf("", "Pod", p)
		causes, err := c.Causes(ctx, o)
		if err != nil {
			return nil, err
		}
		if len(causes) == 0 {
			continue
		}
		i := slices.IndexFunc(groups, func(g *group) bool { return g.cause.Code == causes[0].Code })
		if i < 0 {
			groups = append(groups, &group{first: o, cause: causes[0]})
			i = len(groups) - 1
		}
		groups[i].names = append(groups[i].names, p.Name)
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(underWay(a.cause), underWay(b.cause)), len(b.names)-len(a.names))
	})
	var out []why.Cause
	for _, g := range groups {
		text := fmt.Sprintf("Pod %s is not ready.", g.names[0])
		if len(g.names) > 1 {
			text = fmt.Sprintf("%s are not ready for the same cause: %s.", why.Count(len(g.names), "pod"),
				why.And(g.names))
		}
		out = append(out, why.Cause{Code: "PodsNotReady", Text: text, Because: []why.Cause{g.cause},
			Evidence: []why.Evidence{why.See(g.first, `.status.conditions[?(@.type=="Ready")].status`, "False")}})
	}
	return out, nil
}

// underWay is 1 for what goes by itself when nothing is wrong: it explains nothing while another pod has a fault.
func underWay(c why.Cause) int {
	if slices.Contains([]string{"NotSeenByKubelet", "PullingImage", "Starting", "ReadinessNotYet"}, c.Code) {
		return 1
	}
	return 0
}

// refusedPods explains pods that could not be created, by the newest event that says so; nil if one was created since.
func refusedPods(ctx context.Context, c *why.Case, self why.Object) []why.Cause {
	for _, e := range c.Events(ctx, self) {
		switch e.Reason {
		case "SuccessfulCreate":
			return nil
		case "FailedCreate":
			cause := why.Refused(ctx, c, self.Namespace, e.Message, why.SeeEvent(e))
			if cause.Code == "Refused" { // not all that fails is a refusal
				cause.Text = "The controller says: " + why.Quote(e.Message) + "."
			}
			return []why.Cause{{Code: "PodsNotCreated", Text: "Its pods cannot be created.",
				Because: []why.Cause{cause}}}
		}
	}
	return nil
}
