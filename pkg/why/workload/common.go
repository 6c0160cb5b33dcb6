// Package workload explains what makes pods: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs and
// HorizontalPodAutoscalers. It says which pods are missing and why they could not be made; why a pod is as it is, the
// explainer of pods says.
package workload

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/why"
)

// maxPods is how many pods of earlier revisions are named.
const maxPods = 10

// going answers about a workload that is being deleted.
func going(ctx context.Context, c *why.Case, self why.Object, m metav1.Object) (why.Answer, error) {
	causes, err := why.Finalizers(ctx, c, self, m)
	return why.Answer{Subject: self, Causes: causes, State: fmt.Sprintf("%s has been terminating for %s.", self,
		why.Span(c.Now.Sub(m.GetDeletionTimestamp().Time)))}, err
}

// scaledToZero answers about a workload that wants no pods and has none.
func scaledToZero(self why.Object, m metav1.Object) why.Answer {
	a := why.Answer{Subject: self, Well: true, State: fmt.Sprintf("%s is scaled to 0: it wants no pods.", self)}
	cause := why.Cause{Code: "ScaledToZero", Text: "Its replicas are 0.",
		Evidence: []why.Evidence{why.See(self, ".spec.replicas", "0")}}
	if owner := why.Controller(m); owner != nil {
		cause.Text = fmt.Sprintf("Its replicas are 0, which %s %s has set.", owner.Kind, owner.Name)
	} else {
		cause.Fixes = []why.Fix{{Text: "Scale it up.", Command: "kubectl scale " + self.Arg() + self.Flag() +
			" --replicas=1"}}
	}
	a.Causes = []why.Cause{cause}
	return a
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

// all names all the things of a workload: "its pod", "all its 3 pods".
func all(n int, thing string) string {
	if n == 1 {
		return "its " + thing
	}
	return "all its " + why.Count(n, thing)
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// notReady explains the pods that should be ready and are not.
func notReady(ctx context.Context, c *why.Case, pods []*corev1.Pod) ([]why.Cause, error) {
	return why.NotReady(ctx, c, slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
		return ready(p) || p.Status.Phase == corev1.PodSucceeded || p.DeletionTimestamp != nil
	}))
}

// failedCreate explains a controller's event of something that it could not create.
func failedCreate(ctx context.Context, c *why.Case, e *corev1.Event) why.Cause {
	cause := why.RefusedBefore(ctx, c, e.Namespace, e.Message, why.SeeEvent(e))
	if cause.Code == "Refused" { // not all that fails is a refusal
		cause.Text = "The controller says: " + why.Quote(e.Message) + "."
	}
	return cause
}

// refusedPods explains pods that could not be created, by the newest event that says so; nil if one was created since.
func refusedPods(ctx context.Context, c *why.Case, self why.Object) []why.Cause {
	for _, e := range c.Events(ctx, self) {
		switch e.Reason {
		case "SuccessfulCreate":
			return nil
		case "FailedCreate":
			cause := failedCreate(ctx, c, e)
			text := "Its pods cannot be created."
			if cause.Code == "RefusedBefore" {
				text = "Its pods could not be created so far."
			}
			return []why.Cause{{Code: "PodsNotCreated", Text: text, Because: []why.Cause{cause}}}
		}
	}
	return nil
}
