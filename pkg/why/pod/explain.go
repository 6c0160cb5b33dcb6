// Package pod explains pods: why one waits, is not ready, restarts, has failed, or does not go. Where it would run is
// the scheduler's matter, which package placement answers.
package pod

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// Explainer explains pods.
type Explainer struct {
	// Placement explains pods that have no node yet, and why a pod runs on its node.
	Placement why.Explainer
	// Access explains why an account may not do something.
	Access func(ctx context.Context, c *why.Case, a why.Access) (why.Answer, error)
}

var _ why.Explainer = Explainer{}

// inquiry is one question about one pod.
type inquiry struct {
	*why.Case
	pod  *corev1.Pod
	self why.Object
	// access explains why an account may not do something.
	access func(ctx context.Context, c *why.Case, a why.Access) (why.Answer, error)
	// events about the pod, the newest first.
	events []*corev1.Event
}

// Explain implements why.Explainer.
func (e Explainer) Explain(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	p, known := why.Get[corev1.Pod](ctx, c.World, o.Namespace, o.Name)
	if p == nil {
		a := why.Missing(ctx, c, o, known)
		if known {
			a.Causes = append(gone(ctx, c, o), a.Causes...)
		}
		return a, nil
	}
	q := &inquiry{Case: c, pod: p, self: why.ObjectOf("", "Pod", p), access: e.Access}
	q.events = c.Events(ctx, q.self)
	a := why.Answer{Subject: q.self}
	switch {
	case p.DeletionTimestamp != nil:
		a.State = fmt.Sprintf("%s has been terminating for %s.", q.self, q.since(deletedAt(p)))
		a.Causes = q.terminating(ctx)
	case p.Status.Phase == corev1.PodSucceeded:
		a.State, a.Well = fmt.Sprintf("%s has finished: all its containers succeeded.", q.self), true
	case p.Status.Phase == corev1.PodFailed:
		a.State = fmt.Sprintf("%s has failed%s.", q.self, reasoned(p.Status.Reason))
		a.Causes = tinyFirst(q, q.failed(ctx))
	case p.Spec.NodeName == "":
		return e.Placement.Explain(ctx, c, o)
	default:
		return e.onNode(ctx, q)
	}
	return a, nil
}

// onNode answers about a pod that has a node and has not ended.
func (e Explainer) onNode(ctx context.Context, q *inquiry) (why.Answer, error) {
	a := why.Answer{Subject: q.self}
	ready := condition(q.pod, corev1.PodReady)
	if ready != nil && ready.Status == corev1.ConditionTrue {
		a.State = fmt.Sprintf("%s is running and ready on node %s.", q.self, q.pod.Spec.NodeName)
		a.Causes = slices.Concat(q.resizing(), leaving(ctx, q), tinyDisk(q), q.restarted(ctx),
			stale(ctx, q))
		a.Well = !slices.ContainsFunc(a.Causes, lasting)
		if len(a.Causes) > 0 || q.Nested() {
			return a, nil // whoever asks for causes needs none of a pod that is well
		}
		placed, err := e.Placement.Explain(ctx, q.Case, q.self)
		if err != nil {
			return why.Answer{}, err
		}
		a.Causes = placed.Causes
		return a, nil
	}
	a.State = fmt.Sprintf("%s is on node %s and is not ready.", q.self, q.pod.Spec.NodeName)
	if q.pod.Status.Phase == corev1.PodPending {
		a.State = fmt.Sprintf("%s is on node %s and has been pending for %s.", q.self, q.pod.Spec.NodeName,
			q.since(q.pod.CreationTimestamp.Time))
	}
	a.Causes = q.notReady(ctx)
	if len(a.Causes) == 0 {
		a.State += " Nothing in its status says why."
	}
	return a, nil
}

// lasting reports whether what a ready pod has is no thing of the past.
func lasting(c why.Cause) bool { return c.Code != restartedOnce }

// notReady explains a pod on a node that is not ready: its node, its init containers in their order, its containers,
// its volumes and network, and last its readiness gates. A later step cannot begin before an earlier one has ended, so
// the first that is wrong is the cause. Limits in which nothing can start come before the step at which they show.
func (q *inquiry) notReady(ctx context.Context) []why.Cause {
	if causes := q.nodeGone(ctx); len(causes) > 0 {
		return causes
	}
	return tinyFirst(q, notStarted(ctx, q))
}

// notStarted explains a pod on a healthy node by the first of its steps that is wrong.
func notStarted(ctx context.Context, q *inquiry) []why.Cause {
	for i := range q.pod.Spec.InitContainers {
		c := &q.pod.Spec.InitContainers[i]
		if s := status(q.pod.Status.InitContainerStatuses, c.Name); s != nil {
			if causes := q.container(ctx, c, s, "init container"); len(causes) > 0 {
				return causes
			}
		}
	}
	var causes []why.Cause
	for i := range q.pod.Spec.Containers {
		c := &q.pod.Spec.Containers[i]
		if s := status(q.pod.Status.ContainerStatuses, c.Name); s != nil {
			causes = append(causes, q.container(ctx, c, s, "container")...)
		}
	}
	if len(causes) == 0 {
		causes = q.starting(ctx)
	}
	if len(causes) == 0 {
		causes = q.gates()
	}
	return causes
}

// gates explains a pod whose containers are all ready, but which waits for others to say that it is.
func (q *inquiry) gates() (causes []why.Cause) {
	for _, g := range q.pod.Spec.ReadinessGates {
		c := condition(q.pod, g.ConditionType)
		if c != nil && c.Status == corev1.ConditionTrue {
			continue
		}
		said := "nothing has set this condition"
		if c != nil {
			said = fmt.Sprintf("its status is %s", c.Status)
			if c.Message != "" {
				said += ": " + why.Quote(c.Message)
			}
		}
		causes = append(causes, why.Cause{Code: "ReadinessGate",
			Text: fmt.Sprintf("The pod has the readiness gate %s, and %s. A controller outside the pod must set it "+
				"to True.",
				g.ConditionType, said),
			Evidence: []why.Evidence{why.See(q.self, ".spec.readinessGates", string(g.ConditionType))}})
	}
	return causes
}

// since is how long ago a time is.
func (q *inquiry) since(t time.Time) string { return why.Span(q.Now.Sub(t)) }

// deletedAt is when somebody asked for the pod to go.
func deletedAt(p *corev1.Pod) time.Time {
	grace := time.Duration(0)
	if s := p.DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	return p.DeletionTimestamp.Add(-grace)
}

func reasoned(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

func condition(p *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == t {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

func status(list []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// event returns the newest event about the pod with one of these reasons, nil if there is none.
func (q *inquiry) event(reasons ...string) *corev1.Event {
	for _, e := range q.events {
		for _, r := range reasons {
			if e.Reason == r {
				return e
			}
		}
	}
	return nil
}
