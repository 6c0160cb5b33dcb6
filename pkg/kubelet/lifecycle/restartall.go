package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// rule returns the action of the first restart rule that matches a container's exit code, "" if none does.
func rule(c *corev1.Container, exit int32) corev1.ContainerRestartRuleAction {
	for _, r := range c.RestartPolicyRules {
		if r.ExitCodes == nil {
			continue
		}
		in := slices.Contains(r.ExitCodes.Values, exit)
		if in == (r.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
			return r.Action
		}
	}
	return ""
}

// RestartsAll returns the newest instances of containers whose end restarts all containers of the pod in place: those
// of the present sandbox that exited with a code that has a rule RestartAllContainers (KEP-5532). It returns none once
// they are removed: their existence is the memory of the restart, which so survives a restart of the kubelet.
func RestartsAll(f Facts) []*runtime.Container {
	sandbox := f.Runtime.Sandbox()
	if sandbox == nil || f.Terminating || f.Pod.DeletionTimestamp != nil {
		return nil
	}
	var out []*runtime.Container
	for _, list := range [][]corev1.Container{f.Pod.Spec.InitContainers, f.Pod.Spec.Containers} {
		for i := range list {
			s := f.Runtime.Container(list[i].Name)
			if s != nil && s.SandboxID == sandbox.ID && s.State == runtime.StateExited &&
				rule(&list[i], s.ExitCode) == corev1.ContainerRestartRuleActionRestartAllContainers {
				out = append(out, s)
			}
		}
	}
	return out
}

// formerLife reports whether an end belongs to the life before the last restart of all containers: it decides nothing
// about the present one. The condition AllContainersRestarting, as last reported, remembers when that was, because the
// runtime no longer knows these containers.
func formerLife(pod *corev1.Pod, end *corev1.ContainerStateTerminated) bool {
	c := condition(pod.Status.Conditions, corev1.AllContainersRestarting)
	at := end.FinishedAt
	if at.IsZero() { // it vanished while it ran
		at = end.StartedAt
	}
	return c != nil && (c.Status == corev1.ConditionTrue || !at.Truncate(time.Second).After(c.LastTransitionTime.Time))
}

// removedInPlace reports whether the pod's containers, as last reported, were being removed to begin again.
func removedInPlace(pod *corev1.Pod) bool {
	c := condition(pod.Status.Conditions, corev1.AllContainersRestarting)
	return c != nil && c.Status == corev1.ConditionTrue
}

// restartingAll returns the condition AllContainersRestarting: true from the exit that asks for the restart until all
// containers are removed. A pod that never had such a restart does not have the condition.
func restartingAll(f Facts) []corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.AllContainersRestarting, Status: corev1.ConditionTrue,
		Reason: "RestartAllContainersStarted"}
	if len(RestartsAll(f)) == 0 {
		if condition(f.Pod.Status.Conditions, c.Type) == nil {
			return nil
		}
		c.Status, c.Reason = corev1.ConditionFalse, ""
	}
	return []corev1.PodCondition{c}
}
