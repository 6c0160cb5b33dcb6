package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/podspec"
)

// podSummary is a pod in the few words of `kubectl get pods`.
type podSummary struct {
	// Ready of Total containers (sidecars among them) are running and ready.
	Ready, Total int
	// Status is the phase or the reason that says more: Init:0/1, CrashLoopBackOff, Completed, Terminating.
	Status string
	// Restarts counts those of init containers while they run, then those of sidecars and containers; LastRestart is
	// the latest.
	Restarts    int
	LastRestart metav1.Time
}

// summarizePod reads a pod's statuses.
func summarizePod(p *corev1.Pod) podSummary {
	s := podSummary{Total: len(p.Spec.Containers), Status: string(p.Status.Phase)}
	if p.Status.Reason != "" {
		s.Status = p.Status.Reason
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.Status = corev1.PodReasonSchedulingGated
		}
	}
	sidecars := map[string]bool{}
	for i := range p.Spec.InitContainers {
		if podspec.IsSidecar(&p.Spec.InitContainers[i]) {
			sidecars[p.Spec.InitContainers[i].Name] = true
			s.Total++
		}
	}
	var aside restarts
	initializing := s.initContainers(p, sidecars, &aside)
	if !initializing || podCondition(p, corev1.PodInitialized) {
		s.Restarts, s.LastRestart = aside.count, aside.last
		s.containers(p)
	}
	if p.DeletionTimestamp != nil {
		switch {
		case p.Status.Reason == "NodeLost":
			s.Status = "Unknown"
		case !ended(p.Status.Phase):
			s.Status = "Terminating"
		}
	}
	return s
}

func ended(p corev1.PodPhase) bool { return p == corev1.PodFailed || p == corev1.PodSucceeded }

// restarts counts restarts and keeps the latest.
type restarts struct {
	count int
	last  metav1.Time
}

func (r *restarts) add(c *corev1.ContainerStatus) {
	r.count += int(c.RestartCount)
	if t := c.LastTerminationState.Terminated; t != nil && r.last.Before(&t.FinishedAt) {
		r.last = t.FinishedAt
	}
}

// initContainers looks for the first init container that is not done; its state is the pod's. It reports whether there
// is one.
func (s *podSummary) initContainers(p *corev1.Pod, sidecars map[string]bool, aside *restarts) bool {
	var all restarts
	defer func() { s.Restarts, s.LastRestart = all.count, all.last }()
	for i := range p.Status.InitContainerStatuses {
		c := &p.Status.InitContainerStatuses[i]
		all.add(c)
		if sidecars[c.Name] {
			aside.add(c)
		}
		switch t, w := c.State.Terminated, c.State.Waiting; {
		case t != nil && t.ExitCode == 0:
			continue
		case sidecars[c.Name] && c.Started != nil && *c.Started:
			if c.Ready {
				s.Ready++
			}
			continue
		case t != nil:
			s.Status = "Init:" + terminated(t)
		case w != nil && w.Reason != "" && w.Reason != "PodInitializing":
			s.Status = "Init:" + w.Reason
		default:
			s.Status = fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
		}
		return true
	}
	return false
}

// terminated names an end: its reason, or else the signal or the exit code.
func terminated(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

// containers lets the first container that waits or has ended speak for the pod.
func (s *podSummary) containers(p *corev1.Pod) {
	r := restarts{s.Restarts, s.LastRestart}
	running := false
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &p.Status.ContainerStatuses[i]
		r.add(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.Status = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			s.Status = terminated(c.State.Terminated)
		case c.Ready && c.State.Running != nil:
			running = true
			s.Ready++
		}
	}
	s.Restarts, s.LastRestart = r.count, r.last
	if s.Status == "Completed" && running {
		s.Status = "NotReady"
		if podCondition(p, corev1.PodReady) {
			s.Status = "Running"
		}
	}
}

func podCondition(p *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
