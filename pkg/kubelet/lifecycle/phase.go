package lifecycle

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/podspec"
)

// podPhase computes the pod's phase from its container statuses. terminal is set when no container runs and none will.
// A static pod is never over: its manifest wants it to run as long as it exists.
//
// The first case that fits decides. A failed init container fails the pod. A pod that was ended before its init
// containers were done has failed. Pending init containers keep it Pending. An ended pod succeeded only if each
// container exited with 0. Containers that never ran keep it Pending; otherwise it is Running as long as one runs or
// will run again.
func podPhase(pod *corev1.Pod, inits, regulars []corev1.ContainerStatus, terminal, static bool) corev1.PodPhase {
	pendingInit, failedInit := countInits(pod, inits)
	if failedInit > 0 {
		return corev1.PodFailed
	}
	var running, waiting, stopped, succeeded int
	for i := range pod.Spec.Containers {
		s := find(regulars, pod.Spec.Containers[i].Name)
		switch {
		case s == nil:
			waiting++
		case s.State.Running != nil:
			running++
		case s.State.Terminated != nil:
			stopped++
			if s.State.Terminated.ExitCode == 0 {
				succeeded++
			}
		// It waits for its restart, or for good: it has run, so the pod is not Pending.
		case s.LastTerminationState.Terminated != nil:
			stopped++
		default:
			waiting++
		}
	}
	switch {
	case terminal && pendingInit > 0 && !static:
		return corev1.PodFailed
	case pendingInit > 0:
		return corev1.PodPending
	case terminal && !static && running == 0:
		if stopped == succeeded && waiting == 0 {
			return corev1.PodSucceeded
		}
		return corev1.PodFailed
	case waiting > 0:
		return corev1.PodPending
	case running > 0:
		return corev1.PodRunning
	case stopped == 0:
		return corev1.PodPending
	}
	return stoppedPhase(pod, regulars, stopped == succeeded)
}

// stoppedPhase returns the phase of a pod whose regular containers have all stopped. It is Running while one of them
// will start again.
func stoppedPhase(pod *corev1.Pod, regulars []corev1.ContainerStatus, succeeded bool) corev1.PodPhase {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		s := find(regulars, c.Name)
		var end *corev1.ContainerStateTerminated
		if s != nil {
			if end = s.State.Terminated; end == nil {
				end = s.LastTerminationState.Terminated // it waits: for its restart, or for ever
			}
		}
		if end == nil || formerLife(pod, end) || restarts(pod, c, end.ExitCode) {
			return corev1.PodRunning
		}
	}
	if succeeded {
		return corev1.PodSucceeded
	}
	return corev1.PodFailed
}

// countInits counts the init containers whose work is not done, and those that failed for good: neither their own
// restart policy and rules nor the pod's policy starts them again.
//
// A sidecar is pending until it has started up, or has ended once.
func countInits(pod *corev1.Pod, inits []corev1.ContainerStatus) (pending, failed int) {
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		s := find(inits, c.Name)
		if s == nil {
			pending++
			continue
		}
		t := s.State.Terminated
		if t == nil {
			t = s.LastTerminationState.Terminated
		}
		switch {
		case podspec.IsSidecar(c):
			if s.Started == nil || !*s.Started {
				if s.State.Terminated == nil && s.LastTerminationState.Terminated == nil {
					pending++
				}
			}
		case s.State.Running != nil:
			pending++
		case s.State.Terminated != nil && s.State.Terminated.ExitCode == 0:
		case t != nil && t.ExitCode != 0:
			if !formerLife(pod, t) && !restarts(pod, c, t.ExitCode) {
				failed++
			}
			pending++
		case s.State.Waiting != nil || t == nil:
			pending++
		}
	}
	return pending, failed
}

func find(list []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}
