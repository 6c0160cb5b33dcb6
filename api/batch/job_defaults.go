package batch

import (
	"math"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/defaults"
	"bonsai/api/podspec"
)

func defaultJob(j *batchv1.Job) {
	s := &j.Spec
	defaultTemplates(s)
	if s.Completions == nil && s.Parallelism == nil {
		s.Completions = new(int32(1))
	}
	defaults.SetPtr(&s.Parallelism, 1)
	if s.BackoffLimitPerIndex != nil {
		defaults.SetPtr(&s.BackoffLimit, math.MaxInt32)
	}
	defaults.SetPtr(&s.BackoffLimit, 6)
	defaults.SetPtr(&s.CompletionMode, batchv1.NonIndexedCompletion)
	defaults.SetPtr(&s.Suspend, false)
	replacement := batchv1.TerminatingOrFailed
	if s.PodFailurePolicy != nil {
		replacement = batchv1.Failed
	}
	defaults.SetPtr(&s.PodReplacementPolicy, replacement)
	defaults.SetPtr(&s.ManualSelector, false)
	labelJob(j)
}

// labelJob gives a job without labels those of its pods: one map, as in Kubernetes, so that what generateSelector adds
// is the job's, too.
func labelJob(j *batchv1.Job) {
	if len(j.Labels) == 0 {
		j.Labels = j.Spec.Template.Labels
	}
}

// defaultTemplates fills in what cron jobs' templates of jobs get already: the rest waits until there is a job.
func defaultTemplates(s *batchv1.JobSpec) {
	podspec.DefaultTemplate(&s.Template)
	if s.PodFailurePolicy == nil {
		return
	}
	for i := range s.PodFailurePolicy.Rules {
		patterns := s.PodFailurePolicy.Rules[i].OnPodConditions
		for k := range patterns {
			defaults.Set(&patterns[k].Status, corev1.ConditionTrue)
		}
	}
}

// Labels of a job's pods that are older than those with a domain. The other two are batchv1.ControllerUidLabel and
// JobNameLabel.
const (
	oldUIDLabel  = "controller-uid"
	oldNameLabel = "job-name"
)

// generatedLabels are the labels that distinguish a job's pods from all others, and their values.
func generatedLabels(j *batchv1.Job) map[string]string {
	return map[string]string{
		oldUIDLabel: string(j.UID), batchv1.ControllerUidLabel: string(j.UID),
		oldNameLabel: j.Name, batchv1.JobNameLabel: j.Name,
	}
}

// generateSelector makes the job select its own pods and no others, unless its user takes care of that. What the user
// has put in the place of a generated label stays, and is refused by the validation.
func generateSelector(j *batchv1.Job) {
	if deref(j.Spec.ManualSelector) {
		return
	}
	t := &j.Spec.Template
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	for label, value := range generatedLabels(j) {
		if _, taken := t.Labels[label]; !taken {
			t.Labels[label] = value
		}
	}
	defaults.SetPtr(&j.Spec.Selector, metav1.LabelSelector{})
	if j.Spec.Selector.MatchLabels == nil {
		j.Spec.Selector.MatchLabels = map[string]string{}
	}
	if _, taken := j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel]; !taken {
		j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] = string(j.UID)
	}
}
