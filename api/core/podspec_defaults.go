package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// DefaultPodSpec fills in what a client left out of a pod's or a pod template's spec. It is idempotent.
func DefaultPodSpec(s *corev1.PodSpec) {
	set(&s.RestartPolicy, corev1.RestartPolicyAlways)
	set(&s.DNSPolicy, corev1.DNSClusterFirst)
	set(&s.SchedulerName, corev1.DefaultSchedulerName)
	setPtr(&s.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	setPtr(&s.SecurityContext, corev1.PodSecurityContext{})
	defaultServiceAccount(s)
	for i := range s.Volumes {
		defaultVolume(&s.Volumes[i])
	}
	for i := range s.InitContainers {
		DefaultContainer(&s.InitContainers[i])
	}
	for i := range s.Containers {
		DefaultContainer(&s.Containers[i])
	}
	for i := range s.EphemeralContainers {
		c := corev1.Container(s.EphemeralContainers[i].EphemeralContainerCommon)
		DefaultContainer(&c)
		s.EphemeralContainers[i].EphemeralContainerCommon = corev1.EphemeralContainerCommon(c)
	}
	roundUp(s.Overhead)
	if s.Resources != nil {
		roundUp(s.Resources.Limits)
		roundUp(s.Resources.Requests)
	}
}

// defaultServiceAccount keeps the deprecated serviceAccount equal to serviceAccountName, which wins.
func defaultServiceAccount(s *corev1.PodSpec) {
	set(&s.ServiceAccountName, s.DeprecatedServiceAccount)
	s.DeprecatedServiceAccount = s.ServiceAccountName
}

// DefaultPodTemplate fills in what a client left out of a pod template.
func DefaultPodTemplate(t *corev1.PodTemplateSpec) { DefaultPodSpec(&t.Spec) }

// DefaultPod fills in what a client left out of a pod: what DefaultPodSpec does, and what templates leave to the pod: service
// links, requests that follow from limits, and host ports of the host network.
func DefaultPod(p *corev1.Pod) {
	s := &p.Spec
	DefaultPodSpec(s)
	if g := s.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		s.TerminationGracePeriodSeconds = new(int64(1)) // what a negative period means; templates keep what was said
	}
	setPtr(&s.EnableServiceLinks, true)
	for i := range s.InitContainers {
		defaultRequests(&s.InitContainers[i].Resources)
	}
	for i := range s.Containers {
		defaultRequests(&s.Containers[i].Resources)
	}
	defaultPodRequests(s)
	setPodIPs(&p.Status)
	if s.HostNetwork {
		defaultHostPorts(s.InitContainers)
		defaultHostPorts(s.Containers)
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

// defaultHostPorts makes ports of the host network their own host ports.
func defaultHostPorts(cs []corev1.Container) {
	for i := range cs {
		for j := range cs[i].Ports {
			p := &cs[i].Ports[j]
			set(&p.HostPort, p.ContainerPort)
		}
	}
}

// roundUp rounds quantities up to thousandths, the finest grain that is kept.
func roundUp(list corev1.ResourceList) {
	for name, q := range list {
		q.RoundUp(resource.Milli)
		list[name] = q
	}
}

func defaultFieldRef(r *corev1.ObjectFieldSelector) {
	if r != nil {
		set(&r.APIVersion, "v1")
	}
}

// set gives *p the value v if it has its zero value.
func set[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// setPtr makes *p point to v if it is nil.
func setPtr[T any](p **T, v T) {
	if *p == nil {
		*p = ptr.To(v)
	}
}
