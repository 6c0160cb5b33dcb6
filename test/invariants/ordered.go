package invariants

import (
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// checkOrdinal: with the policy OrderedReady a pod is made when those of all lower ordinals serve. Who looked a moment
// before may have missed that a user took one of them away.
func (w *world) checkOrdinal(s *appsv1.StatefulSet, p *corev1.Pod) {
	ordinal, err := strconv.Atoi(strings.TrimPrefix(p.Name, s.Name+"-"))
	if err != nil || s.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		return
	}
	for i := range ordinal {
		below := fmt.Sprintf("%s-%d", s.Name, i)
		serves, taken := false, false
		for _, o := range w.podsOf(s.UID, func(o *corev1.Pod) bool { return o.Name == below }) {
			serves = serves || ready(o)
			taken = taken || w.deleted[o.UID] || w.evicted[o.UID]
		}
		if !serves && !taken {
			w.report(ordinalEarly, "pod %s is made, and %s does not serve", name(p), below)
		}
	}
}

// job is a Job with what became of its pods.
type job struct {
	*batchv1.Job
	// succeeded are the indexes, failed the pods.
	succeeded map[string]bool
	failed    map[types.UID]bool
}

func (w *world) applyJob(o *batchv1.Job, gone bool) {
	j := w.jobs[o.UID]
	if j == nil {
		j = &job{succeeded: map[string]bool{}, failed: map[types.UID]bool{}}
		w.jobs[o.UID] = j
	}
	j.Job = o
	if gone { // what it last counted is held against its pods at the end
		j.DeletionTimestamp = o.DeletionTimestamp
	}
}

// note remembers how a pod ended.
func (j *job) note(p *corev1.Pod) {
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		j.succeeded[index(p)] = true
	case corev1.PodFailed:
		j.failed[p.UID] = true
	}
}

func index(p *corev1.Pod) string { return p.Annotations[batchv1.JobCompletionIndexAnnotation] }

// checkIndex: no second pod for an index that has one or is done, and no more at once than the Job's parallelism. A pod
// that is being deleted counts only if its replacement is to wait for its end.
func (w *world) checkIndex(j *job, p *corev1.Pod) {
	counts := active
	if r := j.Spec.PodReplacementPolicy; r != nil && *r == batchv1.Failed {
		counts = func(o *corev1.Pod) bool { return !terminal(o) }
	}
	all := w.podsOf(j.UID, counts)
	for _, o := range all {
		if o.UID != p.UID && index(o) == index(p) {
			w.report(indexTwice, "Job %s has pods %s and %s for index %s", name(j), o.Name, p.Name, index(p))
		}
	}
	if j.succeeded[index(p)] {
		w.report(indexTwice, "Job %s gets pod %s for index %s, which has succeeded", name(j), p.Name, index(p))
	}
	if most := int(*j.Spec.Parallelism); len(all) > most {
		w.report(parallelism, "Job %s has %d pods, and may have %d", name(j), len(all), most)
	}
}

// checkTally: a Job that has completed counts each index that succeeded once and each pod that failed once.
func (w *world) checkTally(j *job) {
	for _, c := range j.Status.Conditions {
		if c.Type != batchv1.JobComplete || c.Status != corev1.ConditionTrue {
			continue
		}
		if int(j.Status.Succeeded) != len(j.succeeded) || j.Status.Succeeded != *j.Spec.Completions ||
			int(j.Status.Failed) != len(j.failed) {
			w.report(miscounted, "Job %s of %d completions says %d succeeded, %d failed; %d and %d did", name(j),
				*j.Spec.Completions,
				j.Status.Succeeded, j.Status.Failed, len(j.succeeded), len(j.failed))
		}
	}
}
