package job

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/batch/indexes"
)

// match is the rule of the pod failure policy that decides on a failed pod.
type match struct {
	action  batchv1.PodFailurePolicyAction
	message string
}

// matchFailure returns the first rule that fits a failed pod, or nil. FailIndex without a limit for each index is none.
func (s *state) matchFailure(p *corev1.Pod) *match {
	if s.job.Spec.PodFailurePolicy == nil {
		return nil
	}
	for i, r := range s.job.Spec.PodFailurePolicy.Rules {
		if r.Action == batchv1.PodFailurePolicyActionFailIndex && !s.perIndex() {
			continue
		}
		pod := p.Namespace + "/" + p.Name
		if r.OnExitCodes != nil {
			if c := exitedWith(p, r.OnExitCodes); c != nil {
				return &match{r.Action, fmt.Sprintf(
					"Container %s for pod %s failed with exit code %d matching %v rule at index %d", c.Name, pod,
					c.State.Terminated.ExitCode, r.Action, i)}
			}
			continue
		}
		if c := inCondition(p, r.OnPodConditions); c != nil {
			return &match{r.Action, fmt.Sprintf("Pod %s has condition %v matching %v rule at index %d", pod, c.Type,
				r.Action, i)}
		}
	}
	return nil
}

// failsJob returns the rule by which some pod's failure is the job's, or nil. Pods without the finalizer are counted,
// or were withdrawn.
func (s *state) failsJob() *match {
	for _, p := range s.pods {
		if !tracked(p) || !s.hasFailed(p) {
			continue
		}
		if m := s.matchFailure(p); m != nil && m.action == batchv1.PodFailurePolicyActionFailJob {
			return m
		}
	}
	return nil
}

// exitedWith returns a container of the pod whose exit code is meant by r, or nil. Those that succeeded are not.
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

// meetsSuccessPolicy returns the number of the first rule that the completed indexes meet.
func (s *state) meetsSuccessPolicy() (int, bool) {
	if s.job.Spec.SuccessPolicy == nil {
		return 0, false
	}
	for i, r := range s.job.Spec.SuccessPolicy.Rules {
		of := s.completed
		wanted := s.completions()
		if r.SucceededIndexes != nil {
			named := indexes.Read(*r.SucceededIndexes, s.completions())
			of, wanted = s.completed.Intersect(named), named.Len()
		}
		if r.SucceededCount != nil {
			wanted = int(*r.SucceededCount)
		}
		if of.Len() >= wanted {
			return i, true
		}
	}
	return 0, false
}
