package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/controller"
)

// state is one Job with all that decisions about it need.
//
// It belongs to one round on one goroutine. Objects in it come from the caches and are shared: the methods only read
// them.
type state struct {
	rules
	pods []*corev1.Pod // the job's own, also those at their end
	now  time.Time
	// upToDate says that pods shows everything this controller has created and deleted.
	upToDate bool
	// failures are those that delay the next pod.
	failures failures
	// salt varies the names of the job's pods, after one was found taken by a stranger.
	salt int

	// coming are pods that the server has, and that pods will have.
	coming map[types.UID]bool
	byUID  map[types.UID]*corev1.Pod
	// index is the progress of an indexed job; decide finds it first.
	index progress
	// What tally finds.
	counted
}

// counted is what the pods' ends add up to.
//
// A pod moves through three states: it has ended and is in no status; its uid is in the stored status (waiting); its
// finalizer is off and it is in succeeded or failed.
type counted struct {
	succeeded, failed int32
	// waiting have ended and are named in the status until their finalizer is off; then they are in succeeded and
	// failed.
	waiting batchv1.UncountedTerminatedPods
	// release are the pods whose finalizer can go once the status is stored.
	release []*corev1.Pod
	// ended is how many pods are in release that were not known to have ended; by the policy that decided on them.
	ended map[endKind]int
}

// endKind is how a pod's end was taken, for metrics.
type endKind struct {
	success bool
	action  batchv1.PodFailurePolicyAction // "" without a rule that matches
}

// plan is the next step.
type plan struct {
	create []*corev1.Pod
	// withdraw are deleted without being counted, stop are and count as failed.
	withdraw, stop []*corev1.Pod
	// status is to be stored; active and ready are as they will be when pods are created and deleted as planned.
	status batchv1.JobStatus
	// release lose their finalizer when status is stored.
	release []*corev1.Pod
	// wait, if positive, is when to look again.
	wait time.Duration
	says []says
}

// says is an event.
type says struct{ kind, reason, message string }

func deref[T any](p *T) T {
	var v T
	if p != nil {
		v = *p
	}
	return v
}

func terminating(p *corev1.Pod) bool { return p.DeletionTimestamp != nil && !controller.PodTerminal(p) }

// active are the pods that are neither at their end nor on their way out.
func (s *state) active() (out []*corev1.Pod) {
	for _, p := range s.pods {
		if controller.PodActive(p) {
			out = append(out, p)
		}
	}
	return out
}

func tracked(p *corev1.Pod) bool {
	for _, f := range p.Finalizers {
		if f == batchv1.JobTrackingFinalizer {
			return true
		}
	}
	return false
}

// see makes pods the job's.
func (s *state) see(pods []*corev1.Pod) {
	s.pods = pods
	s.byUID = make(map[types.UID]*corev1.Pod, len(pods))
	for _, p := range pods {
		s.byUID[p.UID] = p
	}
}

// decide finds the next step. The order matters: the verdict decides which pods count as failed (tally), what was
// counted decides whether the job has all its successes (reached), and both decide whether pods are created or taken
// away.
func (s *state) decide() plan {
	s.index = progressOf(s.rules, s.pods)
	v, wait := s.verdict()
	s.tally(v)
	if v == nil {
		v = s.reached()
	}
	out := plan{wait: wait, release: s.release}
	switch {
	case s.job.DeletionTimestamp != nil: // the pods go with it, or are to stay
	case v != nil:
		s.end(v, &out)
	case s.upToDate:
		s.manage(&out)
	}
	s.report(v, &out)
	return out
}
