package job

import (
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/batch/indexes"
)

// progress is how far the indexes of an indexed Job have come.
//
// indexes.Set keeps runs, so a job with a hundred thousand indexes in order costs a few of them.
type progress struct {
	rules
	pods []*corev1.Pod
	// completed and failed include the indexes that the stored status does not have yet. failed is empty without a
	// backoff limit for each index. No index is in both: a success outweighs failures.
	completed, failed indexes.Set
}

// progressOf reads the indexes' progress from the stored status and from the pods that have ended since. It is empty
// for a Job that is not indexed.
//
// The status alone would be late by one write, the pods alone would forget those that were deleted: the union has both.
// Only pods with the finalizer are read, because the others are in the status already, or were withdrawn.
func progressOf(r rules, pods []*corev1.Pod) progress {
	x := progress{rules: r, pods: pods}
	if !x.indexed() {
		return x
	}
	n := x.completions()
	var done, lost []int
	for _, p := range x.pods {
		if i, ok := indexOf(p, n); ok && tracked(p) && p.Status.Phase == corev1.PodSucceeded {
			done = append(done, i)
		}
	}
	x.completed = indexes.Read(x.job.Status.CompletedIndexes, n).Union(indexes.Of(done))
	if !x.perIndex() {
		return x
	}
	for _, p := range x.pods {
		if i, ok := indexOf(p, n); ok && tracked(p) && !x.completed.Has(i) && x.indexFailed(p) {
			lost = append(lost, i)
		}
	}
	for _, i := range indexes.Read(deref(x.job.Status.FailedIndexes), n) {
		for k := i.First; k <= i.Last; k++ {
			if !x.completed.Has(k) {
				lost = append(lost, k)
			}
		}
	}
	x.failed = indexes.Of(lost)
	return x
}

// done reports whether an index has come to its end: it needs no more pods.
func (x *progress) done(i int) bool { return x.completed.Has(i) || x.failed.Has(i) }

// busy are the indexes of pods.
func (x *progress) busy(pods []*corev1.Pod) map[int]bool {
	out := make(map[int]bool, len(pods))
	for _, p := range pods {
		if i, ok := indexOf(p, x.completions()); ok {
			out[i] = true
		}
	}
	return out
}

// lastFailed is the failed pod of each index that knows of the most failures before it. A pod carries the number of
// failures of its index in an annotation; the newest has the highest. Pods whose failure is counted already are read
// too: they keep their finalizer for this purpose (kept).
func (x *progress) lastFailed() map[int]*corev1.Pod {
	out := map[int]*corev1.Pod{}
	for _, p := range x.pods {
		i, ok := indexOf(p, x.completions())
		if !ok || !tracked(p) || !x.hasFailed(p) {
			continue
		}
		if was := out[i]; was == nil || failuresBefore(was) < failuresBefore(p) {
			out[i] = p
		}
	}
	return out
}

// kept are the failed pods that keep their finalizer a while longer: with a limit for each index, the last failed pod
// of an index says how often it has failed, until its successor does.
//
// Without it a failed pod that is deleted would take the number of failures with it, and the index would begin at zero.
func (x *progress) kept(v *verdict, active []*corev1.Pod) map[types.UID]bool {
	if !x.perIndex() || v != nil || x.job.DeletionTimestamp != nil {
		return nil
	}
	n := x.completions()
	busy := x.busy(active)
	keep := map[types.UID]bool{}
	for i, p := range x.lastFailed() {
		if i < n && !busy[i] && !x.done(i) {
			keep[p.UID] = true
		}
	}
	return keep
}

// verdict judges the indexes that have ended.
//
// Failure outweighs success: too many failed indexes end the job even if the success policy is met in the same round.
func (x *progress) verdict() *verdict {
	if !x.indexed() {
		return nil
	}
	if x.perIndex() {
		lost := x.failed.Len()
		if m := x.job.Spec.MaxFailedIndexes; m != nil && lost > int(*m) {
			return &verdict{false, batchv1.JobReasonMaxFailedIndexesExceeded,
				"Job has exceeded the specified maximal number of failed indexes"}
		}
		if lost > 0 && lost+x.completed.Len() >= x.completions() {
			return &verdict{false, batchv1.JobReasonFailedIndexes, "Job has failed indexes"}
		}
	}
	if i, ok := x.meetsSuccessPolicy(); ok {
		return &verdict{true, batchv1.JobReasonSuccessPolicy, fmt.Sprintf("Matched rules at index %d", i)}
	}
	return nil
}

// meetsSuccessPolicy returns the number of the first rule that the completed indexes meet.
//
// A rule without a count wants all of its indexes. Rules are ORed, and the first that matches is the one in the
// message.
func (x *progress) meetsSuccessPolicy() (int, bool) {
	if x.job.Spec.SuccessPolicy == nil {
		return 0, false
	}
	for i, r := range x.job.Spec.SuccessPolicy.Rules {
		of := x.completed
		wanted := x.completions()
		if r.SucceededIndexes != nil {
			named := indexes.Read(*r.SucceededIndexes, x.completions())
			of, wanted = x.completed.Intersect(named), named.Len()
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

// left is how long an index has to wait after its last failed pod, which may be nil.
func (r rules) left(last *corev1.Pod, now time.Time) time.Duration {
	if last == nil {
		return 0
	}
	counted, ignored := r.failuresAfter(last)
	return remaining(int(counted+ignored), ended(last, now), now)
}

// noteFailures writes on a pod how often its index has failed before it.
func (r rules) noteFailures(p, last *corev1.Pod) {
	var counted, ignored int32
	if last != nil {
		counted, ignored = r.failuresAfter(last)
	}
	p.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(int(counted))
	if ignored > 0 {
		p.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = strconv.Itoa(int(ignored))
	}
}
