package quota

import corev1 "k8s.io/api/core/v1"

func countsServices(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceServices, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers:
		return true
	}
	return false
}

// addService counts s, its node ports (those it will get, too) and whether it wants a load balancer.
func addService(used corev1.ResourceList, s *corev1.Service) {
	ports, balancers := 0, 0
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		ports = len(s.Spec.Ports)
	case corev1.ServiceTypeLoadBalancer:
		ports, balancers = len(s.Spec.Ports), 1
		if a := s.Spec.AllocateLoadBalancerNodePorts; a != nil && !*a {
			ports = chosenPorts(s)
		}
	}
	used[corev1.ResourceServices] = one()
	used[corev1.ResourceServicesNodePorts] = number(ports)
	used[corev1.ResourceServicesLoadBalancers] = number(balancers)
}

// chosenPorts is how many node ports the service names itself.
func chosenPorts(s *corev1.Service) int {
	n := 0
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 {
			n++
		}
	}
	return n
}
