package workload

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// Job explains a Job: why it has failed, or has not finished.
func Job(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	j, known := why.Get[batchv1.Job](ctx, c.World, o.Namespace, o.Name)
	if j == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf("batch", "Job", j)
	if j.DeletionTimestamp != nil {
		return going(ctx, c, self, j)
	}
	a := why.Answer{Subject: self}
	if cond := jobCondition(j, batchv1.JobComplete); cond != nil {
		a.State, a.Well = fmt.Sprintf("%s is complete.", self), true
		a.Causes = enough(self, j)
		return a, nil
	}
	pods := podsOf(ctx, c, j.Namespace, j.UID)
	if cond := jobCondition(j, batchv1.JobFailed); cond != nil {
		a.State = fmt.Sprintf("%s has failed %s ago (%s).", self, why.Span(c.Now.Sub(cond.LastTransitionTime.Time)),
			cond.Reason)
		a.Causes = []why.Cause{jobFailure(ctx, c, j, self, cond, pods)}
		return a, nil
	}
	if j.Spec.Suspend != nil && *j.Spec.Suspend {
		a.State = fmt.Sprintf("%s is suspended: it makes no pods.", self)
		a.Causes = []why.Cause{{Code: "Suspended", Text: "Its spec.suspend is true.",
			Evidence: []why.Evidence{why.See(self, ".spec.suspend", "true")},
			Fixes: []why.Fix{{Text: "Let it run.",
				Command: why.Command(`kubectl patch job %s%s --type=merge -p '{"spec":{"suspend":false}}'`, j.Name,
					self.Flag())}}}}
		return a, nil
	}
	a.State = fmt.Sprintf("%s has not finished: of its pods, %d active, %d succeeded, %d failed.", self,
		j.Status.Active, j.Status.Succeeded, j.Status.Failed)
	if by := j.Spec.ManagedBy; by != nil && *by != batchv1.JobControllerName && j.Status.StartTime == nil {
		a.Causes = append(a.Causes, why.Cause{Code: "ManagedBy",
			Text: fmt.Sprintf("Its managedBy is %s: Kubernetes' own controller leaves it to that one, which has not "+
				"started it.",
				*by),
			Evidence: []why.Evidence{why.See(self, ".spec.managedBy", *by)}})
		return a, nil
	}
	if p := j.Spec.Parallelism; p != nil && *p == 0 {
		a.Causes = []why.Cause{{Code: "ParallelismZero", Text: "Its parallelism is 0: it may run no pod at once.",
			Evidence: []why.Evidence{why.See(self, ".spec.parallelism", "0")},
			Fixes: []why.Fix{{Text: "Allow it at least one.", Command: why.Command(
				`kubectl patch job %s%s --type=merge -p '{"spec":{"parallelism":1}}'`, j.Name, self.Flag())}}}}
		return a, nil
	}
	a.Causes = refusedPods(ctx, c, self)
	causes, err := notReady(ctx, c, failedFirst(pods))
	if err != nil {
		return a, err
	}
	a.Causes = append(a.Causes, policies(self, j, pods, causes)...)
	a.Causes = append(a.Causes, running(pods)...)
	if len(a.Causes) == 0 && j.Status.Active > 0 && allReady(pods) {
		if a.Causes, err = unstable(ctx, c, self, pods); err != nil {
			return a, err
		}
		a.Well = len(a.Causes) == 0
		a.State = restlessly(fmt.Sprintf("%s is running: %s, ready", self, why.Count(int(j.Status.Active),
			"active pod")), a.Causes)
	}
	return a, nil
}

// enough explains a Job that is complete although not all of its pods have succeeded.
func enough(self why.Object, j *batchv1.Job) []why.Cause {
	cond := jobCondition(j, batchv1.JobSuccessCriteriaMet)
	if cond == nil || cond.Reason != batchv1.JobReasonSuccessPolicy {
		return nil
	}
	return []why.Cause{{Code: "SuccessPolicy",
		Text: fmt.Sprintf("Its successPolicy is met, and is content with a part of its pods: %s. The controller ended "+
			"those that still ran.", why.Quote(cond.Message)),
		Evidence: []why.Evidence{why.Condition(self, string(cond.Type), string(cond.Status), cond.Reason, cond.Message,
			cond.LastTransitionTime), why.See(self, ".status.succeeded", fmt.Sprintf("%d of %d", j.Status.Succeeded,
			completions(j)))}}}
}

// completions is how many pods of a Job are to succeed.
func completions(j *batchv1.Job) int32 {
	if j.Spec.Completions == nil {
		return 1
	}
	return *j.Spec.Completions
}

// running explains pods in which some containers have done their work while another one runs on: a pod ends with its
// last container.
func running(pods []*corev1.Pod) (causes []why.Cause) {
	for _, p := range pods {
		var done, on []string
		for _, s := range p.Status.ContainerStatuses {
			switch {
			case s.State.Terminated != nil && s.State.Terminated.ExitCode == 0:
				done = append(done, s.Name)
			case s.State.Running != nil:
				on = append(on, s.Name)
			}
		}
		if len(done) == 0 || len(on) == 0 {
			continue
		}
		o := why.ObjectOf("", "Pod", p)
		causes = append(causes, why.Cause{Code: "ContainerRunsOn",
			Text: fmt.Sprintf("Container %s of pod %s has done its work, and container %s runs on: the pod ends "+
				"with its last container.", why.And(done), p.Name, why.And(on)),
			Evidence: []why.Evidence{why.See(o, ".status.containerStatuses[*].state", "terminated: "+why.And(done)+
				"; running: "+why.And(on))},
			Fixes: []why.Fix{{Text: fmt.Sprintf("If %s only helps, make it a sidecar: an initContainer with "+
				"restartPolicy Always, which ends with the others.", why.And(on))}}})
	}
	return causes
}

// allReady reports whether all pods that have not ended are ready.
func allReady(pods []*corev1.Pod) bool {
	for _, p := range pods {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed && !ready(p) {
			return false
		}
	}
	return true
}

// jobFailure explains a Job that has failed for good: which rule ended it, and what its pods died of.
func jobFailure(ctx context.Context, c *why.Case, j *batchv1.Job, self why.Object, cond *batchv1.JobCondition,
	pods []*corev1.Pod) why.Cause {
	cause := why.Cause{Code: cond.Reason, Evidence: []why.Evidence{why.Condition(self, string(cond.Type),
		string(cond.Status), cond.Reason, cond.Message, cond.LastTransitionTime)}}
	switch cond.Reason {
	case batchv1.JobReasonBackoffLimitExceeded:
		limit := int32(6)
		if j.Spec.BackoffLimit != nil {
			limit = *j.Spec.BackoffLimit
		}
		cause.Text = fmt.Sprintf("Its pods failed more often than its backoffLimit (%d) allows.", limit)
		cause.Evidence = append(cause.Evidence, why.See(self, ".spec.backoffLimit", fmt.Sprint(limit)))
	case batchv1.JobReasonFailedIndexes, batchv1.JobReasonMaxFailedIndexesExceeded:
		cause.Text, pods = failedIndexes(j, self, cond, &cause, pods)
	case batchv1.JobReasonDeadlineExceeded:
		cause.Text = "It ran longer than its activeDeadlineSeconds"
		if s := j.Spec.ActiveDeadlineSeconds; s != nil {
			cause.Text += fmt.Sprintf(" (%d s)", *s)
			cause.Evidence = append(cause.Evidence, why.See(self, ".spec.activeDeadlineSeconds", fmt.Sprint(*s)))
		}
		cause.Text += ", so that the controller ended its pods."
		cause.Fixes = []why.Fix{{Text: "Make it again with a longer activeDeadlineSeconds: that of an existing " +
			"Job's past cannot be mended."}}
		return cause
	default:
		cause.Text = "The controller says: " + why.Quote(cond.Message) + "."
	}
	for _, p := range failedFirst(pods) {
		if p.Status.Phase == corev1.PodSucceeded {
			continue
		}
		because, err := c.Causes(ctx, why.ObjectOf("", "Pod", p))
		if err == nil && len(because) > 0 {
			because[0].Text = fmt.Sprintf("Pod %s: %s", p.Name, because[0].Text)
			cause.Because = because[:1]
			break
		}
	}
	if len(pods) == 0 {
		cause.Text += " Its pods are gone, so that nothing says what they died of."
	}
	return cause
}

// failedFirst puts the pods that have failed before those that still try.
func failedFirst(pods []*corev1.Pod) (list []*corev1.Pod) {
	for _, failed := range []bool{true, false} {
		for _, p := range pods {
			if (p.Status.Phase == corev1.PodFailed) == failed {
				list = append(list, p)
			}
		}
	}
	return list
}

func jobCondition(j *batchv1.Job, t batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range j.Status.Conditions {
		if cond := &j.Status.Conditions[i]; cond.Type == t && cond.Status == corev1.ConditionTrue {
			return cond
		}
	}
	return nil
}
