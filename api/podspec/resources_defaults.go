package podspec

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"bonsai/api/quantity"
)

// DefaultPodResources completes pod-level resources (spec.resources) that a pod has.
//
// Limits: what all containers limit gets the sum of their limits, or its pod-level request if that is more; so do huge
// pages that any container limits. Requests: a resource that containers request gets their sum, else its pod-level
// limit, which huge pages always get.
//
// It comes after everything that may change the containers, such as admission: it takes their sums.
func DefaultPodResources(s *corev1.PodSpec) {
	if s.Resources == nil || len(s.Resources.Limits) == 0 && len(s.Resources.Requests) == 0 {
		return
	}
	pod := &corev1.Pod{Spec: *s}
	given, requests := s.Resources.Limits, orEmpty(s.Resources.Requests)
	for name, q := range resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{}) {
		if limit, ok := given[name]; ok && quantity.IsHugePage(name) {
			q = limit.DeepCopy()
		}
		if _, ok := requests[name]; !ok && resourcehelper.IsSupportedPodLevelResource(name) {
			requests[name] = q
		}
	}
	for name, q := range given {
		if _, ok := requests[name]; !ok && resourcehelper.IsSupportedPodLevelResource(name) {
			requests[name] = q.DeepCopy()
		}
	}
	limits := orEmpty(given)
	for name, q := range resourcehelper.AggregateContainerLimits(pod, resourcehelper.PodResourcesOptions{}) {
		if _, ok := limits[name]; ok || !resourcehelper.IsSupportedPodLevelResource(name) ||
			!quantity.IsHugePage(name) && !allLimit(s, name) {
			continue
		}
		if request, ok := requests[name]; ok && request.Cmp(q) > 0 {
			q = request.DeepCopy()
		}
		limits[name] = q
	}
	if len(requests) > 0 {
		s.Resources.Requests = requests
	}
	if len(limits) > 0 {
		s.Resources.Limits = limits
	}
}

func orEmpty(list corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		return corev1.ResourceList{}
	}
	return list.DeepCopy()
}

// allLimit reports whether every container limits a resource.
func allLimit(s *corev1.PodSpec, name corev1.ResourceName) bool {
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			if _, ok := list[i].Resources.Limits[name]; !ok {
				return false
			}
		}
	}
	return true
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
