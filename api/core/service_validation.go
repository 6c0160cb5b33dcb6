package core

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"bonsai/api/validate"
)

// kubeletPort is what a load balancer may not forward to.
const kubeletPort = 10250

// validateService checks a service. Whether its addresses and ports are free is the allocators' business.
// validateService checks a whole Service; old is what it was, or nil. Addresses that it had may stay as they are
// written.
func validateService(s, old *corev1.Service) field.ErrorList {
	path := field.NewPath("spec")
	spec, had := &s.Spec, &corev1.ServiceSpec{}
	if old != nil {
		had = &old.Spec
	}
	headless := spec.ClusterIP == corev1.ClusterIPNone
	errs := validateServiceType(spec, headless, path)
	ports := path.Child("ports")
	if len(spec.Ports) == 0 && !headless && spec.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Required(ports, ""))
	}
	names := sets.New[string]()
	for i := range spec.Ports {
		errs = append(errs, validateServicePort(&spec.Ports[i], len(spec.Ports) > 1, names, ports.Index(i))...)
	}
	if spec.Selector != nil {
		errs = append(errs, metavalidation.ValidateLabels(spec.Selector, path.Child("selector"))...)
	}
	errs = append(errs, validateSessionAffinity(spec, path)...)
	errs = append(errs, ValidateClusterIPs(spec, had.ClusterIPs, path)...)
	errs = append(errs, validateExternalIPs(spec.ExternalIPs, had.ExternalIPs, path.Child("externalIPs"))...)
	errs = append(errs, validate.OneOf(path.Child("type"), spec.Type, corev1.ServiceTypeClusterIP,
		corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)...)
	errs = append(errs, validateNodePorts(spec, ports)...)
	errs = append(errs, validateLoadBalancer(spec, had.LoadBalancerSourceRanges, path)...)
	return append(errs, validateTrafficPolicies(s, path)...)
}

// validateServiceType checks what one type needs or forbids.
func validateServiceType(s *corev1.ServiceSpec, headless bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	notHeadless := func(word string) {
		if headless {
			errs = append(errs, field.Invalid(path.Child("clusterIPs").Index(0), corev1.ClusterIPNone,
				"may not be set to 'None' for "+word+" services"))
		}
	}
	switch s.Type {
	case corev1.ServiceTypeLoadBalancer:
		for i, p := range s.Ports {
			if p.Port == kubeletPort {
				errs = append(errs, field.Invalid(path.Child("ports").Index(i), p.Port,
					fmt.Sprintf("may not expose port %v externally since it is used by kubelet", kubeletPort)))
			}
		}
		notHeadless("LoadBalancer")
	case corev1.ServiceTypeNodePort:
		notHeadless("NodePort")
	case corev1.ServiceTypeExternalName:
		if len(s.ClusterIPs) > 0 || s.ClusterIP != "" {
			errs = append(errs, field.Forbidden(path.Child("clusterIPs"), "may not be set for ExternalName services"))
		}
		if len(s.IPFamilies) > 0 {
			errs = append(errs, field.Forbidden(path.Child("ipFamilies"), "may not be set for ExternalName services"))
		}
		if s.IPFamilyPolicy != nil {
			errs = append(errs, field.Forbidden(path.Child("ipFamilyPolicy"),
				"may not be set for ExternalName services"))
		}
		if name := strings.TrimSuffix(s.ExternalName, "."); name != "" {
			errs = append(errs, validate.Invalid(path.Child("externalName"), name,
				validation.IsDNS1123Subdomain(name))...)
		} else {
			errs = append(errs, field.Required(path.Child("externalName"), ""))
		}
	}
	return errs
}

func validateServicePort(p *corev1.ServicePort, needName bool, names sets.Set[string],
	path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case p.Name == "" && needName:
		errs = append(errs, field.Required(path.Child("name"), ""))
	case p.Name != "":
		errs = append(errs, validate.Invalid(path.Child("name"), p.Name, validation.IsDNS1123Label(p.Name))...)
		if names.Has(p.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), p.Name))
		}
		names.Insert(p.Name)
	}
	errs = append(errs, validate.Invalid(path.Child("port"), p.Port, validation.IsValidPortNum(int(p.Port)))...)
	errs = append(errs, validate.OneOf(path.Child("protocol"), p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP,
		corev1.ProtocolUDP)...)
	errs = append(errs, validate.Port(p.TargetPort, path.Child("targetPort"))...)
	if p.AppProtocol != nil {
		errs = append(errs, validate.QualifiedName(*p.AppProtocol, path.Child("appProtocol"))...)
	}
	return errs
}

func validateSessionAffinity(s *corev1.ServiceSpec, path *field.Path) field.ErrorList {
	errs := validate.OneOf(path.Child("sessionAffinity"), s.SessionAffinity, corev1.ServiceAffinityClientIP,
		corev1.ServiceAffinityNone)
	at := path.Child("sessionAffinityConfig")
	switch {
	case s.SessionAffinity == corev1.ServiceAffinityNone && s.SessionAffinityConfig != nil:
		errs = append(errs, field.Forbidden(at, "must not be set when session affinity is None"))
	case s.SessionAffinity == corev1.ServiceAffinityClientIP:
		c := s.SessionAffinityConfig
		switch {
		case c == nil:
			errs = append(errs, field.Required(at,
				fmt.Sprintf("when session affinity type is %s", corev1.ServiceAffinityClientIP)))
		case c.ClientIP == nil:
			errs = append(errs, field.Required(at.Child("clientIP"),
				fmt.Sprintf("when session affinity type is %s", corev1.ServiceAffinityClientIP)))
		case c.ClientIP.TimeoutSeconds == nil:
			errs = append(errs, field.Required(at.Child("clientIP"),
				fmt.Sprintf("when session affinity type is %s", corev1.ServiceAffinityClientIP)))
		case *c.ClientIP.TimeoutSeconds <= 0 || *c.ClientIP.TimeoutSeconds > maxAffinitySeconds:
			errs = append(errs, field.Invalid(at.Child("clientIP", "timeoutSeconds"), *c.ClientIP.TimeoutSeconds,
				fmt.Sprintf("must be greater than 0 and less than %d", maxAffinitySeconds)))
		}
	}
	return errs
}

// ValidateClusterIPs checks addresses of the service network and their families. Those in had may stay as they are
// written.
func ValidateClusterIPs(s *corev1.ServiceSpec, had []string, path *field.Path) field.ErrorList {
	if s.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	var errs field.ErrorList
	families := sets.New[corev1.IPFamily]()
	for i, f := range s.IPFamilies {
		at := path.Child("ipFamilies").Index(i)
		if known := []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}; !slices.Contains(known, f) {
			errs = append(errs, field.NotSupported(at, f, known))
		}
		if families.Has(f) {
			errs = append(errs, field.Duplicate(at, f))
		}
		families.Insert(f)
	}
	policies := []corev1.IPFamilyPolicy{corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack,
		corev1.IPFamilyPolicySingleStack}
	if p := s.IPFamilyPolicy; p != nil && !slices.Contains(policies, *p) {
		errs = append(errs, field.NotSupported(path.Child("ipFamilyPolicy"), *p, policies))
	}
	at := path.Child("clusterIPs")
	switch {
	case s.ClusterIP == "" && len(s.ClusterIPs) > 0:
		errs = append(errs, field.Invalid(at, s.ClusterIPs, "must be empty when `clusterIP` is not specified"))
	case len(s.ClusterIPs) > 0 && s.ClusterIPs[0] != s.ClusterIP:
		errs = append(errs, field.Invalid(at, s.ClusterIPs, "first value must match `clusterIP`"))
	}
	if len(s.ClusterIPs) > 2 {
		errs = append(errs, field.Invalid(at, s.ClusterIPs, "may only hold up to 2 values"))
	}
	isIP := func(ip string) bool { return validation.IsValidIPForLegacyField(at, ip, true, had) == nil }
	if len(s.ClusterIPs) == 2 && isIP(s.ClusterIPs[0]) && isIP(s.ClusterIPs[1]) &&
		familyOf(s.ClusterIPs[0]) == familyOf(s.ClusterIPs[1]) {
		errs = append(errs, field.Invalid(at, s.ClusterIPs, "may specify no more than one IP for each IP family"))
	}
	for i, ip := range s.ClusterIPs {
		if i == 0 && ip == corev1.ClusterIPNone {
			if len(s.ClusterIPs) > 1 {
				errs = append(errs, field.Invalid(at, s.ClusterIPs, "'None' must be the first and only value"))
			}
			continue
		}
		if msgs := validation.IsValidIPForLegacyField(at.Index(i), ip, true, had); len(msgs) > 0 {
			errs = append(errs, msgs...)
			continue
		}
		if i < len(s.IPFamilies) && familyOf(ip) != s.IPFamilies[i] {
			errs = append(errs, field.Invalid(at.Index(i), ip,
				fmt.Sprintf("expected an %v value as indicated by `ipFamilies[%v]`", s.IPFamilies[i], i)))
		}
	}
	return errs
}

func familyOf(ip string) corev1.IPFamily {
	if a, err := netip.ParseAddr(ip); err == nil && a.Is6() && !a.Is4In6() {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

func validateExternalIPs(ips, had []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, ip := range ips {
		found := validation.IsValidIPForLegacyField(path.Index(i), ip, true, had)
		if len(found) == 0 {
			found = nonSpecialIP(ip, path.Index(i))
		}
		errs = append(errs, found...)
	}
	return errs
}

// nonSpecialIP refuses addresses that no endpoint can have.
func nonSpecialIP(ip string, path *field.Path) field.ErrorList {
	a := netutils.ParseIPSloppy(ip) // another check reports leading zeros
	if a == nil {
		return field.ErrorList{field.Invalid(path, ip, "must be a valid IP address")}
	}
	addr, _ := netip.AddrFromSlice(a)
	return validate.EndpointAddress(ip, addr.Unmap(), path)
}

// validateNodePorts: only types with node ports may have them, and neither they nor ports may be given twice.
func validateNodePorts(s *corev1.ServiceSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type key struct {
		protocol corev1.Protocol
		port     int32
	}
	nodePorts, ports := map[key]bool{}, map[key]bool{}
	for i, p := range s.Ports {
		at := path.Index(i)
		if s.Type == corev1.ServiceTypeClusterIP && p.NodePort != 0 {
			errs = append(errs, field.Forbidden(at.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
		}
		if k := (key{p.Protocol, p.NodePort}); p.NodePort != 0 {
			if nodePorts[k] {
				errs = append(errs, field.Duplicate(at.Child("nodePort"), p.NodePort))
			}
			nodePorts[k] = true
		}
		k := key{p.Protocol, p.Port}
		if ports[k] {
			errs = append(errs, field.Duplicate(at, corev1.ServicePort{Protocol: p.Protocol, Port: p.Port}))
		}
		ports[k] = true
	}
	return errs
}

func validateLoadBalancer(s *corev1.ServiceSpec, had []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	balanced := s.Type == corev1.ServiceTypeLoadBalancer
	ranges := path.Child("LoadBalancerSourceRanges")
	if len(s.LoadBalancerSourceRanges) > 0 && !balanced {
		errs = append(errs, field.Forbidden(ranges, "may only be used when `type` is 'LoadBalancer'"))
	}
	for i, r := range s.LoadBalancerSourceRanges {
		errs = append(errs, validation.IsValidCIDRForLegacyField(ranges.Index(i), strings.TrimSpace(r), true, had)...)
	}
	if balanced && s.AllocateLoadBalancerNodePorts == nil {
		errs = append(errs, field.Required(path.Child("allocateLoadBalancerNodePorts"), ""))
	}
	if !balanced && s.AllocateLoadBalancerNodePorts != nil {
		errs = append(errs, field.Forbidden(path.Child("allocateLoadBalancerNodePorts"),
			"may only be used when `type` is 'LoadBalancer'"))
	}
	if c := s.LoadBalancerClass; c != nil {
		if !balanced {
			errs = append(errs, field.Forbidden(path.Child("loadBalancerClass"),
				"may only be used when `type` is 'LoadBalancer'"))
		} else {
			errs = append(errs, validate.QualifiedName(*c, path.Child("loadBalancerClass"))...)
		}
	}
	return errs
}

func validateTrafficPolicies(s *corev1.Service, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	spec := &s.Spec
	at := path.Child("externalTrafficPolicy")
	switch {
	case !isExternal(spec) && spec.ExternalTrafficPolicy != "":
		errs = append(errs, field.Invalid(at, spec.ExternalTrafficPolicy,
			"may only be set for externally-accessible services"))
	case isExternal(spec):
		errs = append(errs, validate.OneOf(at, spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster,
			corev1.ServiceExternalTrafficPolicyLocal)...)
	}
	if spec.HealthCheckNodePort != 0 && !needsHealthPort(spec) {
		errs = append(errs, field.Invalid(path.Child("healthCheckNodePort"), spec.HealthCheckNodePort,
			"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	}
	at = path.Child("internalTrafficPolicy")
	if p := spec.InternalTrafficPolicy; p != nil {
		errs = append(errs, validate.OneOf(at, *p, corev1.ServiceInternalTrafficPolicyCluster,
			corev1.ServiceInternalTrafficPolicyLocal)...)
	} else if spec.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Required(at, ""))
	}
	if d := spec.TrafficDistribution; d != nil {
		valid := []string{corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone,
			corev1.ServiceTrafficDistributionPreferSameNode}
		if !sets.New(valid...).Has(*d) {
			errs = append(errs, field.NotSupported(path.Child("trafficDistribution"), *d, valid))
		}
	}
	return errs
}

// validateServiceUpdate: an address once given stays while the type has one; a headless service stays headless.
func validateServiceUpdate(obj, old *corev1.Service) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if needsClusterIP(&obj.Spec) && needsClusterIP(&old.Spec) {
		errs = append(errs, validateClusterIPsUpdate(&obj.Spec, &old.Spec, path)...)
	}
	if old.Spec.Type == corev1.ServiceTypeLoadBalancer && obj.Spec.Type == corev1.ServiceTypeLoadBalancer {
		if !apiequality.Semantic.DeepEqual(obj.Spec.LoadBalancerClass, old.Spec.LoadBalancerClass) {
			errs = append(errs, field.Invalid(path.Child("loadBalancerClass"), obj.Spec.LoadBalancerClass,
				"may not change once set"))
		}
	}
	if needsHealthPort(&obj.Spec) && needsHealthPort(&old.Spec) &&
		obj.Spec.HealthCheckNodePort != old.Spec.HealthCheckNodePort {
		errs = append(errs, field.Forbidden(path.Child("healthCheckNodePort"), "field is immutable"))
	}
	return append(errs, validateService(obj, old)...)
}

// validateClusterIPsUpdate: the first address and family stay, and the second address while there is one. Families of
// services without addresses may change.
func validateClusterIPsUpdate(now, was *corev1.ServiceSpec, path *field.Path) field.ErrorList {
	const changed = "may not change once set"
	if len(was.ClusterIPs) == 0 || was.ClusterIPs[0] == "" {
		return nil
	}
	var errs field.ErrorList
	same := len(now.ClusterIPs) == len(was.ClusterIPs)
	for i := range was.ClusterIPs {
		if i >= len(now.ClusterIPs) && i > 0 {
			break
		}
		if i >= len(now.ClusterIPs) || now.ClusterIPs[i] != was.ClusterIPs[i] {
			errs = append(errs, field.Invalid(path.Child("clusterIPs").Index(i), now.ClusterIPs, changed))
		}
	}
	headless := was.ClusterIPs[0] == corev1.ClusterIPNone ||
		len(now.ClusterIPs) > 0 && now.ClusterIPs[0] == corev1.ClusterIPNone
	if !headless && len(now.IPFamilies) > 0 && len(was.IPFamilies) > 0 && now.IPFamilies[0] != was.IPFamilies[0] {
		var shown any = now.IPFamilies
		if !same {
			shown = now.ClusterIPs // as upstream shows it where a second one comes or goes
		}
		errs = append(errs, field.Invalid(path.Child("ipFamilies").Index(0), shown, changed))
	}
	return errs
}

// validateServiceStatusUpdate: addresses that were there before may stay as they are.
func validateServiceStatusUpdate(obj, old *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status", "loadBalancer", "ingress")
	if obj.Spec.Type != corev1.ServiceTypeLoadBalancer && len(obj.Status.LoadBalancer.Ingress) > 0 {
		return field.ErrorList{field.Forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")}
	}
	var had []string
	for _, in := range old.Status.LoadBalancer.Ingress {
		had = append(had, in.IP)
	}
	for i, in := range obj.Status.LoadBalancer.Ingress {
		at := path.Index(i)
		if in.IP != "" {
			errs = append(errs, validation.IsValidIPForLegacyField(at.Child("ip"), in.IP, true, had)...)
		}
		switch {
		case in.IP != "" && in.IPMode == nil:
			errs = append(errs, field.Required(at.Child("ipMode"), "must be specified when `ip` is set"))
		case in.IP == "" && in.IPMode != nil:
			errs = append(errs, field.Forbidden(at.Child("ipMode"), "may not be specified when `ip` is not set"))
		case in.IPMode != nil:
			errs = append(errs, validate.OneOf(at.Child("ipMode"), *in.IPMode, corev1.LoadBalancerIPModeProxy,
				corev1.LoadBalancerIPModeVIP)...)
		}
		if in.Hostname != "" {
			errs = append(errs, validate.Invalid(at.Child("hostname"), in.Hostname,
				validation.IsDNS1123Subdomain(in.Hostname))...)
			if _, err := netip.ParseAddr(in.Hostname); err == nil {
				errs = append(errs, field.Invalid(at.Child("hostname"), in.Hostname,
					"must be a DNS name, not an IP address"))
			}
		}
	}
	return errs
}

// serviceStatusWarnings names addresses of load balancers that are not as they would be shown.
func serviceStatusWarnings(s, _ *corev1.Service) []string {
	var w []string
	for i, in := range s.Status.LoadBalancer.Ingress {
		w = append(w, validate.IPWarnings(field.NewPath("status", "loadBalancer", "ingress").Index(i), in.IP)...)
	}
	return w
}

func serviceWarnings(s, _ *corev1.Service) []string {
	var w []string
	spec, path := &s.Spec, field.NewPath("spec")
	headless := spec.ClusterIP == corev1.ClusterIPNone
	if headless {
		if spec.LoadBalancerIP != "" {
			w = append(w, "spec.loadBalancerIP is ignored for headless services")
		}
		if len(spec.ExternalIPs) > 0 {
			w = append(w, "spec.externalIPs is ignored for headless services")
		}
		if spec.SessionAffinity == corev1.ServiceAffinityClientIP {
			w = append(w, "spec.SessionAffinity is ignored for headless services")
		}
	}
	for i, ip := range spec.ClusterIPs {
		w = append(w, validate.IPWarnings(path.Child("clusterIPs").Index(i), ip)...)
	}
	for i, ip := range spec.ExternalIPs {
		w = append(w, validate.IPWarnings(path.Child("externalIPs").Index(i), ip)...)
	}
	if spec.LoadBalancerIP != "" { // which nothing validates
		w = append(w, validate.IPWarnings(path.Child("loadBalancerIP"), spec.LoadBalancerIP)...)
	}
	for i, cidr := range spec.LoadBalancerSourceRanges {
		w = append(w, validate.CIDRWarnings(path.Child("loadBalancerSourceRanges").Index(i), cidr)...)
	}
	switch {
	case len(spec.ExternalIPs) == 0 || headless:
	case spec.Type == corev1.ServiceTypeExternalName:
		w = append(w, fmt.Sprintf("spec.externalIPs is ignored when spec.type is %q", corev1.ServiceTypeExternalName))
	default:
		w = append(w, "spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	}
	if spec.Type != corev1.ServiceTypeExternalName && spec.ExternalName != "" {
		w = append(w, fmt.Sprintf("spec.externalName is ignored when spec.type is not %q",
			corev1.ServiceTypeExternalName))
	}
	if spec.TrafficDistribution != nil && *spec.TrafficDistribution == corev1.ServiceTrafficDistributionPreferClose {
		w = append(w, "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"")
	}
	return w
}
