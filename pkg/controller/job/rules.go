package job

import (
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/batch"
)

// rules are what a Job's spec says about each of its pods by itself: whether it has failed, and what follows. They need
// neither the other pods nor the time.
type rules struct{ job *batchv1.Job }

func (r rules) indexed() bool   { return batch.Indexed(&r.job.Spec) }
func (r rules) perIndex() bool  { return r.indexed() && r.job.Spec.BackoffLimitPerIndex != nil }
func (r rules) suspended() bool { return deref(r.job.Spec.Suspend) }
func (r rules) completions() int {
	return int(deref(r.job.Spec.Completions))
}

// onlyFailed reports whether a pod is replaced only when it has come to its end.
//
// With a pod failure policy it must be so, as the API documents: the policy judges how a pod ended, and a terminating
// pod has not ended.
func (r rules) onlyFailed() bool {
	return r.job.Spec.PodFailurePolicy != nil || deref(r.job.Spec.PodReplacementPolicy) == batchv1.Failed
}

// hasFailed reports whether a pod counts as failed. One that is being deleted does, unless only ended ones are
// replaced: it may never come to say how it ended.
func (r rules) hasFailed(p *corev1.Pod) bool {
	if r.onlyFailed() {
		return p.Status.Phase == corev1.PodFailed
	}
	return p.Status.Phase == corev1.PodFailed || p.DeletionTimestamp != nil && p.Status.Phase != corev1.PodSucceeded
}

// match is the rule of the pod failure policy that decides on a failed pod.
type match struct {
	action  batchv1.PodFailurePolicyAction
	message string
}

// matchFailure returns the first rule that fits a failed pod, or nil. FailIndex without a limit for each index is none.
//
// The order is the user's. A rule has either exit codes or pod conditions; validation refuses both. A match ends the
// search, also with the action Count, which only shields the pod from later rules.
func (r rules) matchFailure(p *corev1.Pod) *match {
	if r.job.Spec.PodFailurePolicy == nil {
		return nil
	}
	for i, rule := range r.job.Spec.PodFailurePolicy.Rules {
		if rule.Action == batchv1.PodFailurePolicyActionFailIndex && !r.perIndex() {
			continue
		}
		pod := p.Namespace + "/" + p.Name
		if rule.OnExitCodes != nil {
			if c := exitedWith(p, rule.OnExitCodes); c != nil {
				return &match{rule.Action, fmt.Sprintf(
					"Container %s for pod %s failed with exit code %d matching %v rule at index %d", c.Name, pod,
					c.State.Terminated.ExitCode, rule.Action, i)}
			}
			continue
		}
		if c := inCondition(p, rule.OnPodConditions); c != nil {
			return &match{rule.Action, fmt.Sprintf("Pod %s has condition %v matching %v rule at index %d", pod, c.Type,
				rule.Action, i)}
		}
	}
	return nil
}

// failuresAfter is how often the pod's index has failed, with the pod's own failure; ignored ones are apart. Ignored
// failures do not count against the limit, but lengthen the delay.
func (r rules) failuresAfter(p *corev1.Pod) (counted, ignored int32) {
	counted, ignored = annotated(p, batchv1.JobIndexFailureCountAnnotation),
		annotated(p, batchv1.JobIndexIgnoredFailureCountAnnotation)
	if m := r.matchFailure(p); m != nil && m.action == batchv1.PodFailurePolicyActionIgnore {
		return counted, ignored + 1
	}
	return counted + 1, ignored
}

// indexFailed reports whether the pod's failure is the last that its index may have.
func (r rules) indexFailed(p *corev1.Pod) bool {
	if !r.hasFailed(p) {
		return false
	}
	if m := r.matchFailure(p); m != nil && m.action == batchv1.PodFailurePolicyActionFailIndex {
		return true
	}
	counted, _ := r.failuresAfter(p)
	return counted > deref(r.job.Spec.BackoffLimitPerIndex)
}

// failuresBefore is how often the pod's index had failed before the pod, ignored failures among them.
func failuresBefore(p *corev1.Pod) int32 {
	return annotated(p, batchv1.JobIndexFailureCountAnnotation) +
		annotated(p, batchv1.JobIndexIgnoredFailureCountAnnotation)
}

func annotated(p *corev1.Pod, name string) int32 {
	n, err := strconv.ParseInt(p.Annotations[name], 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int32(n)
}

// exitedWith returns a container of the pod whose exit code matches r, or nil. Exit code 0 never matches: with NotIn a
// container that succeeded beside a failed one would otherwise decide on the pod.
func exitedWith(p *corev1.Pod, r *batchv1.PodFailurePolicyOnExitCodesRequirement) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for i := range list {
			c := &list[i]
			t := c.State.Terminated
			if t == nil || t.ExitCode == 0 || r.ContainerName != nil && *r.ContainerName != c.Name {
				continue
			}
			named := slices.Contains(r.Values, t.ExitCode)
			if named && r.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn ||
				!named && r.Operator == batchv1.PodFailurePolicyOnExitCodesOpNotIn {
				return c
			}
		}
	}
	return nil
}

func inCondition(p *corev1.Pod, patterns []batchv1.PodFailurePolicyOnPodConditionsPattern) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		for _, pattern := range patterns {
			if pattern.Type == c.Type && pattern.Status == c.Status {
				return c
			}
		}
	}
	return nil
}
