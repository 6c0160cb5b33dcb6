package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Delays between restarts of a crashing container: 10 s doubling to 5 min, forgotten after 10 min of running well
// (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy).
const (
	BackOffInitial = 10 * time.Second
	BackOffMax     = 5 * time.Minute
	BackOffReset   = 10 * time.Minute
)

// BackOff is the restart history of one container.
type BackOff struct {
	// Delay is what the next crash will wait, zero before the first.
	Delay time.Duration
	// Updated is when Delay was last raised.
	Updated time.Time
}

// Until tells when a container that ended at finished may start again.
func (b BackOff) Until(finished time.Time) time.Time {
	if b.Delay == 0 {
		return time.Time{}
	}
	return finished.Add(b.Delay)
}

// Restarted returns the history after a restart at now of a container that ended at finished. The first restart is free.
func (b BackOff) Restarted(finished, now time.Time, limit time.Duration) BackOff {
	if limit <= 0 {
		limit = BackOffMax
	}
	if b.Delay == 0 || finished.Sub(b.Updated) > BackOffReset {
		return BackOff{Delay: min(BackOffInitial, limit), Updated: now}
	}
	return BackOff{Delay: min(2*b.Delay, limit), Updated: now}
}

// CrashLoop is the reason a container waits that is held back until its delay has passed.
func CrashLoop(pod *corev1.Pod, container string, delay time.Duration) Reason {
	return Reason{Reason: "CrashLoopBackOff", Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
		delay, container, pod.Name, pod.Namespace, pod.UID)}
}
