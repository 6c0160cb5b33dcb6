package job

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/controller"
)

// maxWaiting bounds the pods that a status names at a time: a uid has 36 bytes, and the status of a job with a hundred
// thousand pods must stay far below the size limit of an object.
const maxWaiting = 500

// untold are the pods that the stored status waits for and that are not there.
func (s *state) untold() (uids []types.UID) {
	u := s.job.Status.UncountedTerminatedPods
	if u == nil {
		return nil
	}
	for _, uid := range slices.Concat(u.Succeeded, u.Failed) {
		if s.byUID[uid] == nil {
			uids = append(uids, uid)
		}
	}
	return uids
}

// tally counts the pods that have ended, each once: first its uid is stored in the status, then its finalizer is taken
// off, and when that is seen the uid leaves the status as the count goes up. Whoever continues after a crash in between
// finds where it was. The successes of an indexed job need no uid: counting an index twice changes nothing.
func (s *state) tally(v *verdict) {
	s.succeeded, s.failed = s.job.Status.Succeeded, s.job.Status.Failed
	s.ended = map[endKind]int{}
	known := map[types.UID]bool{}
	if u := s.job.Status.UncountedTerminatedPods; u != nil {
		for _, uid := range u.Succeeded {
			known[uid] = true
			s.settle(uid, &s.waiting.Succeeded, &s.succeeded)
		}
		for _, uid := range u.Failed {
			known[uid] = true
			s.settle(uid, &s.waiting.Failed, &s.failed)
		}
	}
	// From here on the pods themselves: one whose uid is stored only loses its finalizer, another one is taken first.
	keep := s.index.kept(v, s.active())
	for _, p := range s.pods {
		if !tracked(p) || keep[p.UID] || !s.mayRelease(p, v) {
			continue
		}
		if !known[p.UID] && len(s.waiting.Succeeded)+len(s.waiting.Failed) >= maxWaiting {
			break // the others when these are counted
		}
		s.release = append(s.release, p)
		if !known[p.UID] {
			s.take(p, v)
		}
	}
	if s.indexed() {
		s.succeeded = int32(s.index.completed.Len())
	}
}

// settle counts a pod of the status whose finalizer is off, and keeps it there otherwise.
func (s *state) settle(uid types.UID, waiting *[]types.UID, count *int32) {
	if p := s.byUID[uid]; p != nil && tracked(p) || p == nil && s.coming[uid] {
		*waiting = append(*waiting, uid)
		return
	}
	*count++
}

// mayRelease reports whether a pod needs its finalizer no more: its end is known, or does not matter.
//
// When the job itself is being deleted its pods must be free to go, whatever their state.
func (s *state) mayRelease(p *corev1.Pod, v *verdict) bool {
	return s.job.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || s.countsAsFailed(p, v) ||
		v != nil && !controller.PodActive(p)
}

// countsAsFailed is hasFailed in view of how the job ends: the pods that a failing job stops have failed, those that a
// successful one can do without have not.
func (s *state) countsAsFailed(p *corev1.Pod, v *verdict) bool {
	switch {
	case v == nil || p.Status.Phase == corev1.PodFailed:
		return s.hasFailed(p)
	case v.success:
		return false
	}
	return p.DeletionTimestamp != nil && p.Status.Phase != corev1.PodSucceeded
}

// take notes a pod's end.
func (s *state) take(p *corev1.Pod, v *verdict) {
	placed := true
	if s.indexed() {
		_, placed = indexOf(p, s.completions())
	}
	switch {
	// Its finalizer still has to go.
	case !placed: // no longer of this job, which has shrunk
	case p.Status.Phase == corev1.PodSucceeded:
		s.ended[endKind{success: true}]++
		if !s.indexed() {
			s.waiting.Succeeded = append(s.waiting.Succeeded, p.UID)
		}
	case s.countsAsFailed(p, v):
		m := s.matchFailure(p)
		if m == nil {
			s.ended[endKind{}]++
		} else {
			s.ended[endKind{action: m.action}]++
		}
		if m == nil || m.action != batchv1.PodFailurePolicyActionIgnore {
			s.waiting.Failed = append(s.waiting.Failed, p.UID)
		}
	}
}

// total is the number of failures that count, with those not in the stored count yet.
//
// It is read before tally, because the verdict that tally needs depends on it. Pods whose uid is in the status are not
// counted twice.
func (s *state) total() int32 {
	n := s.job.Status.Failed
	var known []types.UID
	if u := s.job.Status.UncountedTerminatedPods; u != nil {
		n += int32(len(u.Failed))
		known = slices.Concat(u.Failed, u.Succeeded)
	}
	here := make(map[types.UID]bool, len(known))
	for _, uid := range known {
		here[uid] = true
	}
	for _, p := range s.pods {
		if !tracked(p) || here[p.UID] || !s.hasFailed(p) {
			continue
		}
		if m := s.matchFailure(p); m == nil || m.action != batchv1.PodFailurePolicyActionIgnore {
			n++
		}
	}
	return n
}
