package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Delays between restarts of a crashing container: 10 s doubling to 5 min
// (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy).
//
// The executor keeps one BackOff for each container in memory: after a restart of the kubelet the next crash is free
// again. The configuration may set a lower limit (KEP-4603).
const (
	backOffInitial = 10 * time.Second
	backOffMax     = 5 * time.Minute
)

// BackOff is the restart history of one container.
//
// It is a value: its methods return a new history and change nothing.
type BackOff struct {
	// Delay is what the next crash will wait, zero before the first.
	Delay time.Duration
	// Updated is when Delay was last raised, which is when the container was last restarted. It has a monotonic
	// reading.
	Updated time.Time
}

// Until returns when a container that ended at finished may start again; zero: at once. limit is the longest delay, 0
// for backOffMax. If finished is later than now, the clock was put back since, perhaps by hours: the delay then runs
// from the last restart, whose monotonic reading does not jump.
func (b BackOff) Until(finished, now time.Time, limit time.Duration) time.Time {
	switch {
	case b.Delay == 0:
		return time.Time{}
	case finished.After(now):
		return b.Updated.Add(b.Delay)
	case b.outlived(finished, limit):
		return time.Time{}
	}
	return finished.Add(b.Delay)
}

// Restarted returns the history after a restart at now of a container that ended at finished. The first restart is
// free.
func (b BackOff) Restarted(finished, now time.Time, limit time.Duration) BackOff {
	if b.Delay == 0 || b.outlived(finished, limit) {
		return BackOff{Delay: min(backOffInitial, longest(limit)), Updated: now}
	}
	return BackOff{Delay: min(2*b.Delay, longest(limit)), Updated: now}
}

// outlived reports whether the container ran for twice the longest delay before it ended. Its history is forgotten
// then: it works, and this end is a new failure.
func (b BackOff) outlived(finished time.Time, limit time.Duration) bool {
	return finished.Sub(b.Updated) > 2*longest(limit)
}

func longest(limit time.Duration) time.Duration {
	if limit <= 0 {
		return backOffMax
	}
	return limit
}

// CrashLoop is the reason a container waits that is held back until its delay has passed.
func CrashLoop(pod *corev1.Pod, container string, delay time.Duration) Reason {
	return Reason{Reason: "CrashLoopBackOff",
		Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
			delay, container, pod.Name, pod.Namespace, pod.UID)}
}
