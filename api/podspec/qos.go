package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// QOSClass returns a pod's quality of service: Guaranteed if every container has cpu and memory limits equal to its
// requests, BestEffort if none has either, else Burstable. A limit alone guarantees nothing: where the API server has
// not made a request of it, there is none. Pod-level resources, where they name any, stand for all containers.
func QOSClass(p *corev1.Pod) corev1.PodQOSClass {
	if resource.IsPodLevelResourcesSet(p) {
		return classOf([]corev1.ResourceRequirements{*p.Spec.Resources})
	}
	var all []corev1.ResourceRequirements
	for _, cs := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range cs {
			all = append(all, cs[i].Resources)
		}
	}
	return classOf(all)
}

func classOf(all []corev1.ResourceRequirements) corev1.PodQOSClass {
	guaranteed, any := true, false
	for _, r := range all {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := r.Requests[name], r.Limits[name]
			any = any || request.Sign() > 0 || limit.Sign() > 0
			guaranteed = guaranteed && limit.Sign() > 0 && request.Cmp(limit) == 0
		}
	}
	switch {
	case !any:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
