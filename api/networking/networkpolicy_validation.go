package networking

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"bonsai/api/validate"
)

func validateNetworkPolicy(p *networkingv1.NetworkPolicy) field.ErrorList {
	return validateNetworkPolicySpec(&p.Spec, nil, field.NewPath("spec"))
}

// validateNetworkPolicyUpdate: ranges that were there before may stay as they are written.
func validateNetworkPolicyUpdate(obj, old *networkingv1.NetworkPolicy) field.ErrorList {
	return validateNetworkPolicySpec(&obj.Spec, policyRanges(&old.Spec), field.NewPath("spec"))
}

// policyRanges are all ranges of addresses that a policy names.
func policyRanges(s *networkingv1.NetworkPolicySpec) []string {
	var ranges []string
	add := func(peers []networkingv1.NetworkPolicyPeer) {
		for _, p := range peers {
			if p.IPBlock != nil {
				ranges = append(append(ranges, p.IPBlock.CIDR), p.IPBlock.Except...)
			}
		}
	}
	for _, r := range s.Ingress {
		add(r.From)
	}
	for _, r := range s.Egress {
		add(r.To)
	}
	return ranges
}

func validateNetworkPolicySpec(s *networkingv1.NetworkPolicySpec, had []string, at *field.Path) field.ErrorList {
	errs := validate.LabelSelector(&s.PodSelector, at.Child("podSelector"))
	for i, r := range s.Ingress {
		rule := at.Child("ingress").Index(i)
		errs = append(errs, validatePolicyPorts(r.Ports, rule.Child("ports"))...)
		errs = append(errs, validatePeers(r.From, had, rule.Child("from"))...)
	}
	for i, r := range s.Egress {
		rule := at.Child("egress").Index(i)
		errs = append(errs, validatePolicyPorts(r.Ports, rule.Child("ports"))...)
		errs = append(errs, validatePeers(r.To, had, rule.Child("to"))...)
	}
	types := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	if len(s.PolicyTypes) > len(types) {
		return append(errs, field.Invalid(at.Child("policyTypes"), s.PolicyTypes,
			"may not specify more than two policyTypes"))
	}
	for i, t := range s.PolicyTypes {
		errs = append(errs, validate.Among(at.Child("policyTypes").Index(i), t, types...)...)
	}
	return errs
}

func validatePolicyPorts(ports []networkingv1.NetworkPolicyPort, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, p := range ports {
		port := at.Index(i)
		if p.Protocol != nil {
			errs = append(errs, validate.Among(port.Child("protocol"), *p.Protocol, corev1.ProtocolTCP,
				corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
		}
		errs = append(errs, validatePolicyPort(&p, port)...)
	}
	return errs
}

// validatePolicyPort checks a port or the range that begins with it.
func validatePolicyPort(p *networkingv1.NetworkPolicyPort, at *field.Path) field.ErrorList {
	end := at.Child("endPort")
	if p.Port == nil {
		if p.EndPort != nil {
			return field.ErrorList{field.Invalid(end, *p.EndPort, "may not be specified when `port` is not specified")}
		}
		return nil
	}
	errs := validate.Port(*p.Port, at.Child("port"))
	if p.EndPort == nil {
		return errs
	}
	if p.Port.Type == intstr.String {
		return append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is non-numeric"))
	}
	if *p.EndPort < p.Port.IntVal {
		errs = append(errs, field.Invalid(end, *p.EndPort, "must be greater than or equal to `port`"))
	}
	return append(errs, validate.Invalid(end, *p.EndPort, validation.IsValidPortNum(int(*p.EndPort)))...)
}

func validatePeers(peers []networkingv1.NetworkPolicyPeer, had []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, p := range peers {
		errs = append(errs, validatePeer(&p, had, at.Index(i))...)
	}
	return errs
}

func validatePeer(p *networkingv1.NetworkPolicyPeer, had []string, at *field.Path) field.ErrorList {
	selects := p.PodSelector != nil || p.NamespaceSelector != nil
	var errs field.ErrorList
	if p.PodSelector != nil {
		errs = append(errs, validate.LabelSelector(p.PodSelector, at.Child("podSelector"))...)
	}
	if p.NamespaceSelector != nil {
		errs = append(errs, validate.LabelSelector(p.NamespaceSelector, at.Child("namespaceSelector"))...)
	}
	if p.IPBlock != nil {
		errs = append(errs, validateIPBlock(p.IPBlock, had, at.Child("ipBlock"))...)
	}
	switch {
	case selects && p.IPBlock != nil:
		errs = append(errs, field.Forbidden(at, "may not specify both ipBlock and another peer"))
	case !selects && p.IPBlock == nil:
		errs = append(errs, field.Required(at, "must specify a peer"))
	}
	return errs
}

// validateIPBlock: of a range that cannot be read nothing is excepted.
func validateIPBlock(b *networkingv1.IPBlock, had []string, at *field.Path) field.ErrorList {
	if b.CIDR == "" {
		return field.ErrorList{field.Required(at.Child("cidr"), "")}
	}
	errs := validation.IsValidCIDRForLegacyField(at.Child("cidr"), b.CIDR, true, had)
	_, whole, err := netutils.ParseCIDRSloppy(b.CIDR)
	if err != nil {
		return errs
	}
	size, _ := whole.Mask.Size()
	for i, e := range b.Except {
		except := at.Child("except").Index(i)
		errs = append(errs, validation.IsValidCIDRForLegacyField(except, e, true, had)...)
		_, part, err := netutils.ParseCIDRSloppy(e)
		if err != nil {
			continue
		}
		if partSize, _ := part.Mask.Size(); !whole.Contains(part.IP) || partSize <= size {
			errs = append(errs, field.Invalid(except, e, "must be a strict subset of `cidr`"))
		}
	}
	return errs
}

// networkPolicyWarnings names ranges that are not as they would be shown.
func networkPolicyWarnings(p, _ *networkingv1.NetworkPolicy) []string {
	var w []string
	add := func(peers []networkingv1.NetworkPolicyPeer, at *field.Path) {
		for i, peer := range peers {
			if peer.IPBlock == nil {
				continue
			}
			block := at.Index(i).Child("ipBlock")
			w = append(w, validate.CIDRWarnings(block.Child("cidr"), peer.IPBlock.CIDR)...)
			for j, e := range peer.IPBlock.Except {
				w = append(w, validate.CIDRWarnings(block.Child("except").Index(j), e)...)
			}
		}
	}
	spec := field.NewPath("spec")
	for i, r := range p.Spec.Ingress {
		add(r.From, spec.Child("ingress").Index(i).Child("from"))
	}
	for i, r := range p.Spec.Egress {
		add(r.To, spec.Child("egress").Index(i).Child("to"))
	}
	return w
}
