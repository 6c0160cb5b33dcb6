package serviceip

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// hasNodePorts reports whether the type may have node ports at all, allocated or set by hand.
func hasNodePorts(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeNodePort || svc.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// carryOver keeps the old service's addresses and ports where the client's object leaves them out, as a PUT of a
// manifest does.
func carryOver(svc, old *corev1.Service) {
	s, was := &svc.Spec, &old.Spec
	if needsIP(old) && needsIP(svc) {
		if s.ClusterIP == "" && len(s.ClusterIPs) == 0 {
			s.ClusterIP, s.ClusterIPs = was.ClusterIP, slices.Clone(was.ClusterIPs)
		} else if s.ClusterIP == was.ClusterIP && s.ClusterIPs == nil {
			s.ClusterIPs = slices.Clone(was.ClusterIPs)
		} else if s.ClusterIP == "" {
			s.ClusterIP = s.ClusterIPs[0]
		}
		if len(s.ClusterIPs) > 0 && s.ClusterIP != s.ClusterIPs[0] && slices.Equal(s.ClusterIPs, was.ClusterIPs) {
			s.ClusterIPs = []string{s.ClusterIP}
		}
		if s.IPFamilyPolicy == nil {
			s.IPFamilyPolicy = was.IPFamilyPolicy
		}
		if len(s.IPFamilies) == 0 {
			s.IPFamilies = slices.Clone(was.IPFamilies)
		}
	}
	if isHeadless(old) && isHeadless(svc) {
		if s.IPFamilyPolicy == nil {
			s.IPFamilyPolicy = was.IPFamilyPolicy
		}
		if len(s.IPFamilies) == 0 {
			s.IPFamilies = slices.Clone(was.IPFamilies)
		}
	}
	if needsPorts(old) && needsPorts(svc) {
		keepNodePorts(s.Ports, was.Ports)
	}
	if needsHealthPort(old) && needsHealthPort(svc) && s.HealthCheckNodePort == 0 {
		s.HealthCheckNodePort = was.HealthCheckNodePort
	}
}

// keepNodePorts matches ports by name, whatever else of them has changed, unless the client uses the old node port
// elsewhere.
func keepNodePorts(ports, old []corev1.ServicePort) {
	had := map[string]int32{}
	for _, p := range old {
		had[p.Name] = p.NodePort
	}
	used := map[int32]bool{}
	for _, p := range ports {
		used[p.NodePort] = true
	}
	for i := range ports {
		p := &ports[i]
		if n := had[p.Name]; p.NodePort == 0 && n != 0 && !used[n] {
			p.NodePort = n
		}
	}
}
