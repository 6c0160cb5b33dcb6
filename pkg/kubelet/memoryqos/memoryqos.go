// Package memoryqos says how the kernel protects and throttles the memory of pods beyond their limits, for the cgroups
// of pods and for those of containers (KEP-2570). It needs cgroup v2.
package memoryqos

import (
	"os"

	corev1 "k8s.io/api/core/v1"
)

// QoS is what the node does. The zero value protects nothing and throttles nobody.
type QoS struct {
	// Off means that the feature is off: containers lose the throttle that an earlier kubelet gave them.
	Off bool
	// Protect keeps the memory that pods request from being reclaimed (memoryReservationPolicy TieredReservation).
	Protect bool
	// Factor, above 0 and up to 1, is the part of the way from request to limit at which a container is throttled
	// (memoryThrottlingFactor); 0: none is.
	Factor float64
	// Allocatable stands in for a limit that is missing: the memory that pods may use together, in bytes.
	Allocatable int64
}

// Unlimited is a threshold that is never reached.
const Unlimited = -1

// Protection is memory, in bytes, that the kernel does not take away: Min never, Low not while others have some that is
// not protected.
type Protection struct{ Min, Low int64 }

// Protection returns what of a request of a pod or container of that class is protected.
func (q QoS) Protection(class corev1.PodQOSClass, request int64) Protection {
	switch {
	case !q.Protect:
	case class == corev1.PodQOSGuaranteed:
		return Protection{Min: request}
	case class == corev1.PodQOSBurstable:
		return Protection{Low: request}
	}
	return Protection{}
}

// High returns the use of memory, in bytes, beyond which a pod or container of that class is throttled: whole pages
// between its request and its limit, 0 for a limit that is missing. 0 says that the feature has nothing to say.
func (q QoS) High(class corev1.PodQOSClass, request, limit int64) int64 {
	switch {
	case q.Off:
		return Unlimited
	case q.Factor <= 0 || class == corev1.PodQOSGuaranteed:
		return 0
	case limit <= 0:
		limit = q.Allocatable
	}
	page := int64(os.Getpagesize())
	high := int64(float64(request)+q.Factor*float64(limit-request)) / page * page
	if high <= request {
		return Unlimited
	}
	return high
}
