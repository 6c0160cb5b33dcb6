package workload

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// policies puts before the causes of a Job that has not finished what its policies make of its pods: failures that do
// not count, and new pods that wait until others have ended.
func policies(self why.Object, j *batchv1.Job, pods []*corev1.Pod, causes []why.Cause) []why.Cause {
	for _, p := range pods {
		rule, at := ruleFor(j, p)
		if p.Status.Phase != corev1.PodFailed || rule == nil || rule.Action != batchv1.PodFailurePolicyActionIgnore {
			continue
		}
		limit := "backoffLimit"
		if j.Spec.BackoffLimit != nil {
			limit += fmt.Sprintf(" (%d)", *j.Spec.BackoffLimit)
		}
		return []why.Cause{{Code: "FailuresIgnored",
			Text: fmt.Sprintf("Rule %d of its podFailurePolicy ignores how its pods fail (%s): such failures do not count "+
				"against its %s, and a new pod is made each time, without end.", at, ruleText(rule), limit),
			Evidence: []why.Evidence{why.See(self, fmt.Sprintf(".spec.podFailurePolicy.rules[%d].action", at),
				string(rule.Action)), why.See(self, ".status.failed", fmt.Sprint(j.Status.Failed))},
			Fixes: []why.Fix{{Text: "Make the Job again with a rule of action Count or FailJob for these failures, or with " +
				"an activeDeadlineSeconds that ends it."}},
			Because: causes}}
	}
	if r := j.Spec.PodReplacementPolicy; r != nil && *r == batchv1.Failed && deref(j.Status.Terminating) > 0 {
		return append([]why.Cause{{Code: "ReplacementWaits",
			Text: fmt.Sprintf("Its podReplacementPolicy is Failed: a new pod is made when one that is ending has ended, and "+
				"%s still ending.", isOrAre(int(*j.Status.Terminating))),
			Evidence: []why.Evidence{why.See(self, ".spec.podReplacementPolicy", string(*r)),
				why.See(self, ".status.terminating", fmt.Sprint(*j.Status.Terminating))}}}, causes...)
	}
	return causes
}

func deref(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

func isOrAre(n int) string {
	if n == 1 {
		return "1 pod is"
	}
	return fmt.Sprintf("%d pods are", n)
}

// ruleFor returns the rule of a Job's podFailurePolicy that decides about a pod that has failed: the first that
// matches; nil for none.
func ruleFor(j *batchv1.Job, p *corev1.Pod) (rule *batchv1.PodFailurePolicyRule, at int) {
	if j.Spec.PodFailurePolicy == nil {
		return nil, 0
	}
	for i := range j.Spec.PodFailurePolicy.Rules {
		if r := &j.Spec.PodFailurePolicy.Rules[i]; matchesExit(r.OnExitCodes, p) ||
			matchesCondition(r.OnPodConditions, p) {
			return r, i
		}
	}
	return nil, 0
}

func matchesExit(r *batchv1.PodFailurePolicyOnExitCodesRequirement, p *corev1.Pod) bool {
	if r == nil {
		return false
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		t := s.State.Terminated
		if t == nil || t.ExitCode == 0 || r.ContainerName != nil && *r.ContainerName != s.Name {
			continue
		}
		if slices.Contains(r.Values, t.ExitCode) == (r.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn) {
			return true
		}
	}
	return false
}

func matchesCondition(patterns []batchv1.PodFailurePolicyOnPodConditionsPattern, p *corev1.Pod) bool {
	return slices.ContainsFunc(patterns, func(w batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == w.Type && (c.Status == w.Status || w.Status == "" && c.Status == corev1.ConditionTrue)
		})
	})
}

// ruleText says what a rule matches.
func ruleText(r *batchv1.PodFailurePolicyRule) string {
	if r.OnExitCodes == nil {
		var types []string
		for _, p := range r.OnPodConditions {
			types = append(types, string(p.Type))
		}
		return "condition " + why.And(types)
	}
	codes := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(r.OnExitCodes.Values)), ", "), "[]")
	if r.OnExitCodes.Operator == batchv1.PodFailurePolicyOnExitCodesOpNotIn {
		return "exit codes other than " + codes
	}
	return "exit code " + codes
}

// failedIndexes explains an indexed Job that has failed by its indexes, and returns their pods.
func failedIndexes(j *batchv1.Job, self why.Object, cond *batchv1.JobCondition, cause *why.Cause,
	pods []*corev1.Pod) (text string, theirs []*corev1.Pod) {
	failed := ""
	if j.Status.FailedIndexes != nil {
		failed = *j.Status.FailedIndexes
	}
	text = fmt.Sprintf("The controller says: %s. Failed are the indexes %s", why.Quote(cond.Message), failed)
	if n := j.Spec.Completions; n != nil {
		text += fmt.Sprintf(" of %d", *n)
	}
	cause.Evidence = append(cause.Evidence, why.See(self, ".status.failedIndexes", failed))
	if limit := j.Spec.BackoffLimitPerIndex; limit != nil {
		text += fmt.Sprintf("; each may fail %s more often (backoffLimitPerIndex)", times(int(*limit)))
		cause.Evidence = append(cause.Evidence, why.See(self, ".spec.backoffLimitPerIndex", fmt.Sprint(*limit)))
	}
	return text + ".", pods
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
