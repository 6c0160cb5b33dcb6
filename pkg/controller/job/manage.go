package job

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/batch"
	"bonsai/pkg/controller"
)

// burst is how many pods one reconcile creates or deletes at most. Creation starts slowly (podcontrol.Change), so that
// a template that is refused costs one request, not 500.
const burst = 500

// manage creates the pods that should be there, or takes away those that should not: one at a time, so that what is
// created knows what was deleted.
//
// It runs only while the cache shows all own writes and the end of the job is not decided yet.
func (s *state) manage(out *plan) {
	active := s.active()
	wanted := s.wanted(len(active))
	if surplus := s.surplus(active, len(active)-wanted); len(surplus) > 0 {
		out.withdraw = surplus[:min(len(surplus), burst)]
		return
	}
	// One write at a time here too: a pod that exists before the status says Resumed would start before startTime.
	if s.suspended() || batch.IsTrue(&s.job.Status, batchv1.JobSuspended) { // the status says first that it is resumed
		return
	}
	missing := wanted - len(active)
	// A terminating pod still holds its place (KEP-3939): its replacement waits until it is at its end, so that the two
	// never run at the same time.
	if s.onlyFailed() {
		for _, p := range s.pods {
			if terminating(p) {
				missing--
			}
		}
	}
	if missing <= 0 {
		return
	}
	s.fill(min(missing, burst), active, out)
}

// wanted is how many pods should be active; active is how many are.
//
//   - A suspended job wants none.
//   - Without completions it is a work queue: parallelism pods until the first succeeds, then no new ones. The pods
//     share the work, so one success means that the queue is empty.
//   - With completions it wants what is missing, at most parallelism. Of an indexed job, failed indexes are done too.
func (s *state) wanted(active int) int {
	if s.suspended() {
		return 0
	}
	parallelism := int(deref(s.job.Spec.Parallelism))
	succeeded := int(s.succeeded) + len(s.waiting.Succeeded)
	if s.job.Spec.Completions == nil {
		if succeeded > 0 { // the others may end, too
			return active
		}
		return parallelism
	}
	if s.indexed() {
		succeeded = s.index.completed.Len() + s.index.failed.Len()
	}
	return max(min(s.completions()-succeeded, parallelism), 0)
}

// surplus are the active pods to take away, at least n if there are as many: of an indexed job those whose index is
// done, out of range or another pod's, then those that are the least loss. Of two pods with one index the one that
// would be the greater loss stays.
func (s *state) surplus(active []*corev1.Pod, n int) []*corev1.Pod {
	ranked := slices.Clone(active)
	slices.SortStableFunc(ranked, compareLoss)
	var out, rest []*corev1.Pod
	if s.indexed() {
		taken := map[int]bool{}
		for _, p := range slices.Backward(ranked) { // whom it would be the most loss to delete keeps the index
			i, ok := indexOf(p, s.completions())
			if !ok || taken[i] || s.index.done(i) {
				out = append(out, p)
				continue
			}
			taken[i] = true
			rest = append(rest, p)
		}
		slices.Reverse(rest)
	} else {
		rest = ranked
	}
	if more := n - len(out); more > 0 {
		out = append(out, rest[:min(more, len(rest))]...)
	}
	return out
}

// compareLoss orders pods by how little is lost with them: those without a node, not running, not ready, and young ones
// first.
//
// The name decides last, so that two rounds choose the same pods.
func compareLoss(a, b *corev1.Pod) int {
	order := func(p *corev1.Pod) int {
		switch {
		case p.Spec.NodeName == "":
			return 0
		case p.Status.Phase == corev1.PodPending:
			return 1
		case p.Status.Phase != corev1.PodRunning:
			return 2
		case !controller.PodReady(p):
			return 3
		}
		return 4
	}
	return cmp.Or(cmp.Compare(order(a), order(b)), b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name))
}

// fill creates up to n pods, unless failures of late make them wait.
//
// An indexed job creates the lowest index that is neither busy nor done first, as Kubernetes documents. With a limit
// for each index a failed index waits by itself, otherwise the whole job waits.
func (s *state) fill(n int, active []*corev1.Pod, out *plan) {
	if !s.perIndex() {
		if left := s.failures.left(s.now); left > 0 {
			out.wait = sooner(out.wait, left)
			return
		}
	}
	names := s.namer()
	if !s.indexed() {
		for range n {
			out.create = append(out.create, s.podFor(names, 0))
		}
		return
	}
	busy := s.index.busy(active)
	if s.onlyFailed() {
		for _, p := range s.pods {
			if i, ok := indexOf(p, s.completions()); ok && terminating(p) {
				busy[i] = true
			}
		}
	}
	last := map[int]*corev1.Pod{}
	if s.perIndex() {
		last = s.index.lastFailed()
	}
	// n bounds the new pods, busy and done skip the indexes that need none. The walk is linear in completions.
	for i := 0; i < s.completions() && n > 0; i++ {
		if busy[i] || s.index.done(i) {
			continue
		}
		n-- // also for an index that waits: those after it do not overtake it
		if left := s.left(last[i], s.now); left > 0 {
			out.wait = sooner(out.wait, left)
			continue
		}
		p := s.podFor(names, i)
		if s.perIndex() {
			s.noteFailures(p, last[i])
		}
		out.create = append(out.create, p)
	}
}

// end takes away the active pods of a job whose end is decided, at most burst of them; the next rounds take the rest. A
// job that succeeds withdraws them uncounted. Those of a job that fails are stopped and count as failed.
func (s *state) end(v *verdict, out *plan) {
	active := s.active()
	active = active[:min(len(active), burst)]
	if v.success {
		out.withdraw = active
	} else {
		out.stop = active
	}
}

// sooner is the smaller of two waits. A wait that is not positive means none.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}
