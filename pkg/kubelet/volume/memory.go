package volume

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// MemorySize is how many bytes a pod's volume in memory may have: what the pod may use, else what all pods together
// may, and no more than the volume's own limit, if it has one. allocatable is the node's memory for pods; 0: it is not
// known, and a volume without any bound has 0.
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

// memoryLimit is the limit of memory of a pod's cgroup, in bytes; 0 for none: it has none itself, nor has each of its
// containers.
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
