package inferred

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/safetext"
	"bonsai/pkg/story"
)

// Now says how a pod is at a time.
func Now(p *corev1.Pod, at time.Time) story.Now {
	n := story.Now{At: at}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		n.Over = strings.ToLower(string(p.Status.Phase))
		n.Ended = lastEnd(p)
		return n
	}
	_, n.Ready = condition(p.Status.Conditions, func(c *corev1.PodCondition) (string, bool, metav1.Time) {
		return string(c.Type), c.Status == corev1.ConditionTrue, metav1.NewTime(at) // whenever it became so
	}, string(corev1.PodReady))
	if !n.Ready {
		n.Why, n.Lost = why(p), lost(p)
	}
	return n
}

// lost is since when a pod is not Ready that was before, the zero time for one that never was. The kubelet says that a
// pod is not Ready before the first container starts, and after that only if it was Ready meanwhile.
func lost(p *corev1.Pod) time.Time {
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type != corev1.PodReady || c.Status != corev1.ConditionFalse {
			continue
		}
		for j := range p.Status.ContainerStatuses {
			s := &p.Status.ContainerStatuses[j]
			for _, t := range ends(s) {
				if !neverRan(t) && !t.StartedAt.IsZero() && t.StartedAt.Before(&c.LastTransitionTime) {
					return c.LastTransitionTime.Time
				}
			}
			if r := s.State.Running; r != nil && r.StartedAt.Before(&c.LastTransitionTime) {
				return c.LastTransitionTime.Time
			}
		}
	}
	return time.Time{}
}

// lastEnd is when the last container of a pod ended, the zero time if none has.
func lastEnd(p *corev1.Pod) (last time.Time) {
	for i := range p.Status.ContainerStatuses {
		if t := p.Status.ContainerStatuses[i].State.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	return last
}

// why says in a few words why a pod is not Ready: by its first container that waits or has ended.
func why(p *corev1.Pod) string {
	if p.DeletionTimestamp != nil {
		return "Terminating"
	}
	for i := range p.Status.InitContainerStatuses {
		c := &p.Status.InitContainerStatuses[i]
		if words := held(c); words != "" {
			return "init container " + safetext.Text(c.Name) + " is in " + words
		}
		if c.State.Running != nil && !c.Ready && (c.Started == nil || !*c.Started) {
			return "init container " + safetext.Text(c.Name) + " runs"
		}
	}
	for i := range p.Status.ContainerStatuses {
		if words := held(&p.Status.ContainerStatuses[i]); words != "" {
			return words
		}
	}
	for i := range p.Status.ContainerStatuses {
		if c := &p.Status.ContainerStatuses[i]; c.State.Running != nil && !c.Ready {
			return "container " + safetext.Text(c.Name) + " runs and is not ready"
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != "" {
			return safetext.Text(c.Reason)
		}
	}
	for i := range p.Status.ContainerStatuses { // the usual way to a start
		if w := p.Status.ContainerStatuses[i].State.Waiting; w != nil && w.Reason != "" {
			return safetext.Text(w.Reason)
		}
	}
	if p.Status.Reason != "" {
		return safetext.Text(p.Status.Reason)
	}
	return string(p.Status.Phase)
}

// held says what holds a container: the reason for which it waits, and how it ended. It is "" for a container that
// runs, that has ended well before others, or that is on its usual way to a start.
func held(c *corev1.ContainerStatus) string {
	w, t := c.State.Waiting, c.State.Terminated
	switch {
	case w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing":
		words := safetext.Text(w.Reason)
		if last := c.LastTerminationState.Terminated; last != nil {
			words += " (" + end(last) + ")"
		}
		return words
	case t != nil && t.ExitCode != 0:
		return end(t)
	}
	return ""
}

// end says how a container ended: "exit code 1", "OOMKilled, exit code 137".
func end(t *corev1.ContainerStateTerminated) string {
	code := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Signal != 0 {
		code = fmt.Sprintf("signal %d", t.Signal)
	}
	if t.Reason == "" || t.Reason == "Error" || t.Reason == "Completed" {
		return code
	}
	return safetext.Text(t.Reason) + ", " + code
}
