package job

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/controller"
)

// After a failure the next pod comes after backoffFirst, after another one after twice as long, up to backoffMost; a
// success begins again.
//
// These are the delays that Kubernetes documents for pod failures of a Job
// (https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-backoff-failure-policy). With a limit for each
// index the same delays run for each index by itself.
const (
	backoffFirst = 10 * time.Second
	backoffMost  = 10 * time.Minute
)

// failures are a job's failed pods since the last that succeeded.
//
// It lives in the memory of the controller only: pods that are counted may be deleted, so that no object holds the
// number. After a restart the delay begins with the pods that are still there.
type failures struct {
	n    int
	last time.Time // when the last of them ended
	// seen are the pods that are in n or lie before the last success. It is bounded by the pods there are.
	seen map[string]struct{}
}

// with returns f with the ends of pods that it does not know yet. Pods that are gone are forgotten, but not their
// failures.
//
// A success counts by the time at which it ended, not by the order in which the watch reported it: failures before the
// last success do not delay, those after it do, also when both are seen in one round.
func (f failures) with(s *state) failures {
	out := failures{n: f.n, last: f.last, seen: make(map[string]struct{}, len(s.pods))}
	var success time.Time
	var fresh []time.Time
	for _, p := range s.pods {
		failed, succeeded := s.hasFailed(p), p.Status.Phase == corev1.PodSucceeded
		if failed && p.DeletionTimestamp != nil && !tracked(p) {
			continue // withdrawn, or counted and known
		}
		if !failed && !succeeded {
			continue
		}
		// A pod is counted in the first round that sees its end. Later rounds only carry its key on, for as long as it
		// exists.
		key := string(p.UID)
		out.seen[key] = struct{}{}
		if _, known := f.seen[key]; known {
			continue
		}
		at := ended(p, s.now)
		if succeeded {
			if at.After(success) {
				success = at
			}
			continue
		}
		fresh = append(fresh, at)
	}
	// All failures that are known ended before the success.
	if !success.IsZero() && !out.last.After(success) {
		out.n = 0
	}
	// The last success of this round comes before: what failed earlier than it delays nothing.
	for _, at := range fresh {
		if !at.After(success) {
			continue
		}
		out.n++
		if at.After(out.last) {
			out.last = at
		}
	}
	return out
}

// left is how long the next pod has to wait.
func (f failures) left(now time.Time) time.Duration { return remaining(f.n, f.last, now) }

func remaining(n int, last, now time.Time) time.Duration {
	if n == 0 {
		return 0
	}
	wait := backoffMost
	if shift := n - 1; shift < 7 { // 10 s · 2⁶ is more than the most
		wait = min(backoffFirst<<shift, backoffMost)
	}
	return max(wait-now.Sub(last), 0)
}

// ended is when a pod came to its end, by the best evidence there is, in this order: the last container's end; the
// moment at which it stopped being ready; the request to delete it, which is its deletionTimestamp less the grace
// period; its creation. now is the last resort: it delays too long rather than not at all.
func ended(p *corev1.Pod, now time.Time) time.Time {
	var at time.Time
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if t := list[i].State.Terminated; t != nil && t.FinishedAt.After(at) {
				at = t.FinishedAt.Time
			}
		}
	}
	if !at.IsZero() {
		return at
	}
	if c := controller.PodCondition(p, corev1.PodReady); c != nil && c.Status == corev1.ConditionFalse &&
		!c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	if t := p.DeletionTimestamp; t != nil {
		return t.Add(-time.Duration(deref(p.DeletionGracePeriodSeconds)) * time.Second)
	}
	if !p.CreationTimestamp.IsZero() {
		return p.CreationTimestamp.Time
	}
	return now
}
