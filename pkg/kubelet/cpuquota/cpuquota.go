// Package cpuquota says how limits of CPU become quotas of time, for the cgroups of pods and for those of containers.
package cpuquota

import "time"

// Quota is how the node keeps limits of CPU: a cgroup with a limit may run for a quota of time in each period. The
// zero value is the default of Kubernetes.
type Quota struct {
	// Off means that limits of CPU are not kept.
	Off bool
	// Period is the length of a period, at least a millisecond; 0: 100 ms.
	Period time.Duration
}

// leastQuota is the smallest quota that the kernel takes, in microseconds.
const leastQuota = 1000

// Microseconds returns the length of a period.
func (q Quota) Microseconds() int64 {
	if q.Period == 0 {
		return 100_000
	}
	return q.Period.Microseconds()
}

// Of returns the quota, in microseconds, for a limit in thousandths of a CPU; 0: there is no limit to keep.
func (q Quota) Of(milli int64) int64 {
	if q.Off || milli <= 0 {
		return 0
	}
	return max(milli*q.Microseconds()/1000, leastQuota)
}
