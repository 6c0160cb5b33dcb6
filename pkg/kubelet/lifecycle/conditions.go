package lifecycle

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/podspec"
	"bonsai/pkg/kubelet/runtime"
)

// conditions returns the kubelet's own conditions of a pod. The other fields of st are set already: readiness is
// computed from the statuses of containers that will be reported with it.
func conditions(f Facts, r Report, st *corev1.PodStatus) []corev1.PodCondition {
	ready := containersReady(f.Pod, st)
	return append(append(append(restartingAll(f), disrupted(r)...), resizing(f)...),
		sandboxCondition(f),
		initialized(f.Pod, st),
		podReady(f.Pod, st, ready),
		ready,
		corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
	)
}

// disrupted returns the condition that lets controllers tell an end by the node from a failure of the workload
// (https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions).
func disrupted(r Report) []corev1.PodCondition {
	if r.Disruption == "" {
		return nil
	}
	return []corev1.PodCondition{
		{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet,
			Message: r.Disruption}}
}

// sandboxCondition is PodReadyToStartContainers: the sandbox runs and has its addresses. On the host's network there
// are none to wait for.
//
// It tells delays of the network and volumes from those of images and containers (KEP-3085).
func sandboxCondition(f Facts) corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse,
		Reason: "PodSandboxNotReady"}
	switch s := f.Runtime.Sandbox(); {
	case s == nil:
		c.Message = "no pod sandbox exists"
	case !s.Ready:
		c.Message = "pod sandbox is not ready"
	case !s.HostNetwork && len(s.IPs) == 0:
		c.Message = "pod sandbox has no IP address"
	default:
		c.Status, c.Reason = corev1.ConditionTrue, ""
	}
	return c
}

// initialized is the condition Initialized. It stays true once a regular container has begun, even if a sidecar is
// restarting: controllers take it for a step that is done once.
func initialized(pod *corev1.Pod, st *corev1.PodStatus) corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	if st.Phase == corev1.PodSucceeded {
		c.Reason = "PodCompleted"
		return c
	}
	var incomplete []string
	for i := range pod.Spec.InitContainers {
		ct := &pod.Spec.InitContainers[i]
		s := find(st.InitContainerStatuses, ct.Name)
		if s == nil || (podspec.IsSidecar(ct) && (s.Started == nil || !*s.Started)) ||
			(!podspec.IsSidecar(ct) && !s.Ready) {
			incomplete = append(incomplete, ct.Name)
		}
	}
	if len(incomplete) > 0 && !anyBegun(st) {
		c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotInitialized"
		c.Message = fmt.Sprintf("containers with incomplete status: %s", list(incomplete))
	}
	return c
}

// anyBegun reports whether a regular container has begun: the pod was initialized then, whatever its sidecars do now.
func anyBegun(st *corev1.PodStatus) bool {
	for _, s := range st.ContainerStatuses {
		if s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil {
			return true
		}
	}
	return false
}

// containersReady is the condition ContainersReady: all regular containers and all sidecars are ready. Init containers
// that have done their work do not count.
//
// The phase decides first: containers that have ended are never ready, whatever their last status said.
func containersReady(pod *corev1.Pod, st *corev1.PodStatus) corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse}
	if ended(&c, st.Phase) {
		return c
	}
	var unknown, unready []string
	check := func(name string, statuses []corev1.ContainerStatus) {
		if s := find(statuses, name); s == nil {
			unknown = append(unknown, name)
		} else if !s.Ready {
			unready = append(unready, name)
		}
	}
	for i := range pod.Spec.InitContainers {
		if podspec.IsSidecar(&pod.Spec.InitContainers[i]) {
			check(pod.Spec.InitContainers[i].Name, st.InitContainerStatuses)
		}
	}
	for i := range pod.Spec.Containers {
		check(pod.Spec.Containers[i].Name, st.ContainerStatuses)
	}
	var parts []string
	if len(unknown) > 0 {
		parts = append(parts, fmt.Sprintf("containers with unknown status: %s", list(unknown)))
	}
	if len(unready) > 0 {
		parts = append(parts, fmt.Sprintf("containers with unready status: %s", list(unready)))
	}
	if len(parts) == 0 {
		c.Status = corev1.ConditionTrue
		return c
	}
	c.Reason, c.Message = "ContainersNotReady", strings.Join(parts, ", ")
	return c
}

// ended sets the reason of a condition that is false because the pod has ended.
func ended(c *corev1.PodCondition, phase corev1.PodPhase) bool {
	switch phase {
	case corev1.PodSucceeded:
		c.Reason = "PodCompleted"
	case corev1.PodFailed:
		c.Reason = "PodFailed"
	default:
		return false
	}
	return true
}

// podReady adds the pod's readiness gates to the readiness of its containers.
//
// The gates' conditions come from other writers, by the API (KEP-580). A missing condition counts as false.
func podReady(pod *corev1.Pod, st *corev1.PodStatus, containers corev1.PodCondition) corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.PodReady, Status: containers.Status, Reason: containers.Reason,
		Message: containers.Message}
	if c.Status != corev1.ConditionTrue {
		return c
	}
	var missing []string
	for _, g := range pod.Spec.ReadinessGates {
		cond := condition(pod.Status.Conditions, g.ConditionType)
		switch {
		case cond == nil:
			missing = append(missing,
				fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", g.ConditionType))
		case cond.Status != corev1.ConditionTrue:
			missing = append(missing,
				fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", g.ConditionType,
					cond.Status))
		}
	}
	if len(missing) > 0 {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "ReadinessGatesNotReady", strings.Join(missing, ", ")
	}
	return c
}

func list(names []string) string { return "[" + strings.Join(names, " ") + "]" }

func condition(cs []corev1.PodCondition, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range cs {
		if cs[i].Type == t {
			return &cs[i]
		}
	}
	return nil
}

// mergeConditions returns our conditions together with those that other writers set on the object. A condition whose
// status did not change keeps its transition time. Conditions of a resize are the exception: once ours does not have
// one, it is gone, since it describes only the present.
//
// An entry of another writer of the same type as ours is replaced: the kubelet owns these types.
func mergeConditions(old, own []corev1.PodCondition, generation int64, now metav1.Time) []corev1.PodCondition {
	out := make([]corev1.PodCondition, 0, len(own)+len(old))
	for _, c := range own {
		c.LastTransitionTime, c.ObservedGeneration = now, cmp.Or(c.ObservedGeneration, generation)
		if o := condition(old, c.Type); o != nil && o.Status == c.Status && !o.LastTransitionTime.IsZero() {
			c.LastTransitionTime = o.LastTransitionTime
		}
		out = append(out, c)
	}
	for _, o := range old {
		if condition(own, o.Type) == nil && !runtime.ResizeCondition(o.Type) {
			out = append(out, o)
		}
	}
	return out
}
