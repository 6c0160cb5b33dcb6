package volume

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// MemorySize returns the size in bytes of a pod's volume in memory: the smallest of what all pods together may have
// (allocatable, 0 if it is unknown), the pod's memory limit and the volume's own limit, as far as these exist. It
// returns 0 if there is no bound at all.
func MemorySize(pod *corev1.Pod, limit *resource.Quantity, allocatable int64) int64 {
	size, own := allocatable, int64(0)
	if limit != nil {
		own = limit.Value()
	}
	for _, bound := range []int64{memoryLimit(pod), own} {
		if bound > 0 && (size == 0 || bound < size) {
			size = bound
		}
	}
	return size
}

// memoryLimit returns the memory limit of a pod's cgroup in bytes; 0 for none: neither the pod has one, nor has each of
// its containers.
func memoryLimit(pod *corev1.Pod) int64 {
	if r := pod.Spec.Resources; r == nil || r.Limits.Memory().IsZero() {
		for i := range pod.Spec.Containers {
			if pod.Spec.Containers[i].Resources.Limits.Memory().IsZero() {
				return 0
			}
		}
	}
	limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
	return limits.Memory().Value()
}
