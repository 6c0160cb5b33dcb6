package podspec

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/defaults"
	"bonsai/api/podspec/volumes"
	"bonsai/api/quantity"
)

// Default fills in what a client left out of a pod's or a pod template's spec. It is idempotent.
func Default(s *corev1.PodSpec) {
	defaults.Set(&s.RestartPolicy, corev1.RestartPolicyAlways)
	defaults.Set(&s.DNSPolicy, corev1.DNSClusterFirst)
	defaults.Set(&s.SchedulerName, corev1.DefaultSchedulerName)
	defaults.SetPtr(&s.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	defaults.SetPtr(&s.SecurityContext, corev1.PodSecurityContext{})
	defaultServiceAccount(s)
	for i := range s.Volumes {
		volumes.Default(&s.Volumes[i])
	}
	for i := range s.InitContainers {
		defaultContainer(&s.InitContainers[i])
	}
	for i := range s.Containers {
		defaultContainer(&s.Containers[i])
	}
	for i := range s.EphemeralContainers {
		c := corev1.Container(s.EphemeralContainers[i].EphemeralContainerCommon)
		defaultContainer(&c)
		s.EphemeralContainers[i].EphemeralContainerCommon = corev1.EphemeralContainerCommon(c)
	}
	quantity.RoundUp(s.Overhead)
	if s.Resources != nil {
		quantity.RoundUp(s.Resources.Limits)
		quantity.RoundUp(s.Resources.Requests)
	}
}

// defaultServiceAccount keeps the deprecated serviceAccount equal to serviceAccountName, which wins.
func defaultServiceAccount(s *corev1.PodSpec) {
	defaults.Set(&s.ServiceAccountName, s.DeprecatedServiceAccount)
	s.DeprecatedServiceAccount = s.ServiceAccountName
}

// DefaultPod is Default for a spec that is a pod's own, with what templates leave to their pods: service links, a
// positive grace period, containers' requests that follow from their limits, and host ports of the host network. What
// follows for the pod as a whole comes later (DefaultPodResources).
func DefaultPod(s *corev1.PodSpec) {
	Default(s)
	if g := s.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		s.TerminationGracePeriodSeconds = new(int64(1)) // what a negative period means; templates keep what was said
	}
	defaults.SetPtr(&s.EnableServiceLinks, true)
	for i := range s.InitContainers {
		defaultRequests(&s.InitContainers[i].Resources)
	}
	for i := range s.Containers {
		defaultRequests(&s.Containers[i].Resources)
	}
	if s.HostNetwork {
		defaultHostPorts(s.InitContainers)
		defaultHostPorts(s.Containers)
	}
}

// defaultHostPorts makes ports of the host network their own host ports.
func defaultHostPorts(cs []corev1.Container) {
	for i := range cs {
		for j := range cs[i].Ports {
			p := &cs[i].Ports[j]
			defaults.Set(&p.HostPort, p.ContainerPort)
		}
	}
}
