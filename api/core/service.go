package core

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/defaults"
	"bonsai/api/resources"
)

func serviceRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Service"), Resource: "services", Singular: "service",
		Namespaced:  true,
		ShortNames:  []string{"svc"},
		Categories:  []string{"all"},
		StoragePath: "services/specs",
		New:         resources.Make[corev1.Service],
		Strategy:    serviceStrategy().Strategy(),
		Subresources: []resources.Subresource{
			resources.Action("proxy", corev1.SchemeGroupVersion.WithKind("ServiceProxyOptions"), "create", "delete",
				"get", "patch", "update"),
			resources.Status(serviceStatusStrategy().Strategy()),
		},
		FieldNames: []string{"spec.clusterIP", "spec.type"},
		Fields: resources.Fields(func(s *corev1.Service) fields.Set {
			return fields.Set{"spec.clusterIP": s.Spec.ClusterIP, "spec.type": string(s.Spec.Type)}
		}),
		Columns: serviceColumns(),
		Cells:   resources.Cells(serviceCells),
	}
}

func serviceStrategy() resources.Typed[*corev1.Service] {
	return resources.Typed[*corev1.Service]{
		ReturnDeleted: true,
		Default:       defaultService,
		PrepareCreate: func(s *corev1.Service) {
			s.Status = corev1.ServiceStatus{}
			dropInternalPolicy(&s.Spec)
			if s.Spec.ClusterIP != "" && len(s.Spec.ClusterIPs) == 0 {
				s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
			}
		},
		PrepareUpdate:  prepareServiceUpdate,
		Validate:       func(s *corev1.Service) field.ErrorList { return validateService(s, nil) },
		ValidateUpdate: validateServiceUpdate,
		Warnings:       serviceWarnings,
		ValidateName:   apivalidation.NameIsDNSLabel,
		CreateOnUpdate: true,
	}
}

func serviceStatusStrategy() resources.Typed[*corev1.Service] {
	s := serviceStrategy()
	s.PrepareUpdate = func(obj, old *corev1.Service) { obj.Spec = *old.Spec.DeepCopy() }
	s.ValidateUpdate = validateServiceStatusUpdate
	s.Warnings = serviceStatusWarnings
	return s
}

// maxAffinitySeconds and defaultAffinitySeconds bound how long ClientIP affinity lasts.
const (
	maxAffinitySeconds     = 86400
	defaultAffinitySeconds = corev1.DefaultClientIPServiceAffinitySeconds
)

func defaultService(s *corev1.Service) {
	spec := &s.Spec
	defaults.Set(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	if spec.SessionAffinity == corev1.ServiceAffinityNone {
		spec.SessionAffinityConfig = nil
	}
	if spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		if spec.SessionAffinityConfig == nil || spec.SessionAffinityConfig.ClientIP == nil ||
			spec.SessionAffinityConfig.ClientIP.TimeoutSeconds == nil {
			timeout := int32(defaultAffinitySeconds)
			spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}}
		}
	}
	defaults.Set(&spec.Type, corev1.ServiceTypeClusterIP)
	for i := range spec.Ports {
		p := &spec.Ports[i]
		defaults.Set(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if isExternal(spec) {
		defaults.Set(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if spec.Type != corev1.ServiceTypeExternalName {
		defaults.SetPtr(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		defaults.SetPtr(&spec.AllocateLoadBalancerNodePorts, true)
		for i := range s.Status.LoadBalancer.Ingress {
			if in := &s.Status.LoadBalancer.Ingress[i]; in.IP != "" {
				defaults.SetPtr(&in.IPMode, corev1.LoadBalancerIPModeVIP)
			}
		}
	}
}

// isExternal reports whether clients outside the cluster can reach a service.
func isExternal(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeLoadBalancer || s.Type == corev1.ServiceTypeNodePort ||
		s.Type == corev1.ServiceTypeClusterIP && len(s.ExternalIPs) > 0
}

func prepareServiceUpdate(obj, old *corev1.Service) {
	obj.Status = *old.Status.DeepCopy()
	normalizeClusterIPs(&obj.Spec, &old.Spec)
	keepAllocated(&obj.Spec, &old.Spec)
	dropByType(&obj.Spec, &old.Spec)
	if obj.Spec.Type != corev1.ServiceTypeLoadBalancer {
		obj.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}

// normalizeClusterIPs makes clusterIPs follow a clusterIP that a client changed without knowing of the list.
func normalizeClusterIPs(s, old *corev1.ServiceSpec) {
	same := apiequality.Semantic.DeepEqual(s.ClusterIPs, old.ClusterIPs)
	switch {
	case s.ClusterIP == old.ClusterIP:
	case s.ClusterIP == "" && same:
		s.ClusterIPs = nil
	case s.ClusterIP != "" && (len(s.ClusterIPs) == 0 || same):
		s.ClusterIPs = []string{s.ClusterIP}
	}
}

func needsClusterIP(s *corev1.ServiceSpec) bool { return s.Type != corev1.ServiceTypeExternalName }

func needsNodePort(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeNodePort ||
		s.Type == corev1.ServiceTypeLoadBalancer &&
			(s.AllocateLoadBalancerNodePorts == nil || *s.AllocateLoadBalancerNodePorts)
}

// mayHaveNodePorts reports whether the type may have node ports at all, given by the server or chosen by hand.
func mayHaveNodePorts(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeNodePort || s.Type == corev1.ServiceTypeLoadBalancer
}

func needsHealthPort(s *corev1.ServiceSpec) bool {
	return s.Type == corev1.ServiceTypeLoadBalancer &&
		s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// keepAllocated leaves addresses and ports as they were given, where a PUT says nothing of them.
func keepAllocated(s, old *corev1.ServiceSpec) {
	if needsClusterIP(s) && needsClusterIP(old) {
		if s.ClusterIP == "" {
			s.ClusterIP = old.ClusterIP
		}
		if len(s.ClusterIPs) == 0 && s.ClusterIP == old.ClusterIP {
			s.ClusterIPs = old.ClusterIPs
		}
	}
	if needsNodePort(s) && needsNodePort(old) {
		keepNodePorts(s, old)
	}
	if needsHealthPort(s) && needsHealthPort(old) {
		defaults.Set(&s.HealthCheckNodePort, old.HealthCheckNodePort)
	}
}

// keepNodePorts gives a port without a node port the one that the port of its name had, if nobody asks for it.
func keepNodePorts(s, old *corev1.ServiceSpec) {
	had, taken := map[string]int32{}, map[int32]bool{}
	for _, p := range old.Ports {
		had[p.Name] = p.NodePort
	}
	for _, p := range s.Ports {
		taken[p.NodePort] = true
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		if was := had[p.Name]; p.NodePort == 0 && !taken[was] {
			p.NodePort = was // two protocols may share one
		}
	}
}

// dropByType drops what the new type has no use for, unless the client set it in the same update.
func dropByType(s, old *corev1.ServiceSpec) {
	if needsClusterIP(old) && !needsClusterIP(s) {
		if s.ClusterIP == old.ClusterIP && apiequality.Semantic.DeepEqual(s.ClusterIPs, old.ClusterIPs) {
			s.ClusterIP, s.ClusterIPs = "", nil
		}
		if apiequality.Semantic.DeepEqual(s.IPFamilies, old.IPFamilies) {
			s.IPFamilies, s.IPFamilyPolicy = nil, nil
		}
	}
	// One that is given no node ports any more (allocateLoadBalancerNodePorts) keeps those that it has.
	if mayHaveNodePorts(old) && !mayHaveNodePorts(s) && sameNodePorts(s, old) {
		for i := range s.Ports {
			s.Ports[i].NodePort = 0
		}
	}
	if needsHealthPort(old) && !needsHealthPort(s) && s.HealthCheckNodePort == old.HealthCheckNodePort {
		s.HealthCheckNodePort = 0
	}
	if old.Type == corev1.ServiceTypeLoadBalancer && s.Type != corev1.ServiceTypeLoadBalancer {
		if apiequality.Semantic.DeepEqual(s.AllocateLoadBalancerNodePorts, old.AllocateLoadBalancerNodePorts) {
			s.AllocateLoadBalancerNodePorts = nil
		}
		if apiequality.Semantic.DeepEqual(s.LoadBalancerClass, old.LoadBalancerClass) {
			s.LoadBalancerClass = nil
		}
	}
	if isExternal(old) && !isExternal(s) && s.ExternalTrafficPolicy == old.ExternalTrafficPolicy {
		s.ExternalTrafficPolicy = ""
	}
	dropInternalPolicy(s)
}

// dropInternalPolicy drops the policy of traffic that an ExternalName never gets. One that there is not stays, for
// validation to refuse.
func dropInternalPolicy(s *corev1.ServiceSpec) {
	p := s.InternalTrafficPolicy
	if s.Type == corev1.ServiceTypeExternalName && p != nil &&
		(*p == corev1.ServiceInternalTrafficPolicyCluster || *p == corev1.ServiceInternalTrafficPolicyLocal) {
		s.InternalTrafficPolicy = nil
	}
}

func sameNodePorts(s, old *corev1.ServiceSpec) bool {
	had := map[int32]bool{}
	for _, p := range old.Ports {
		had[p.NodePort] = true
	}
	for _, p := range s.Ports {
		if p.NodePort != 0 && !had[p.NodePort] {
			return false
		}
	}
	return true
}
