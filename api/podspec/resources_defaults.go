package podspec

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// defaultPodRequests completes pod-level requests (spec.resources): a resource that containers request gets their
// sum, else its pod-level limit.
func defaultPodRequests(s *corev1.PodSpec) {
	if s.Resources == nil || len(s.Resources.Limits) == 0 && len(s.Resources.Requests) == 0 {
		return
	}
	requests := s.Resources.Requests.DeepCopy()
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	containers := resourcehelper.AggregateContainerRequests(&corev1.Pod{Spec: *s}, resourcehelper.PodResourcesOptions{})
	for name, q := range containers {
		if _, ok := requests[name]; !ok && resourcehelper.IsSupportedPodLevelResource(name) {
			requests[name] = q
		}
	}
	for name, q := range s.Resources.Limits {
		if _, ok := requests[name]; !ok && resourcehelper.IsSupportedPodLevelResource(name) {
			requests[name] = q.DeepCopy()
		}
	}
	if len(requests) > 0 {
		s.Resources.Requests = requests
	}
}

// defaultRequests sets a missing request to its limit.
func defaultRequests(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}
