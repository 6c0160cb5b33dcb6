package serviceip

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/core"
)

// setFamilies fills in ipFamilyPolicy and ipFamilies (KEP-563), and both ways of writing cluster IPs. Single stack is the
// default; a headless service without selector is both, as its endpoints may be.
func (a *Allocator) setFamilies(svc, old *corev1.Service) field.ErrorList {
	s := &svc.Spec
	if s.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	if s.ClusterIPs == nil && s.ClusterIP != "" {
		s.ClusterIPs = []string{s.ClusterIP}
	}
	if old == nil || s.ClusterIP != "" { // an update may leave out an address that it gives back
		if errs := core.ValidateClusterIPs(s, field.NewPath("spec")); len(errs) > 0 {
			return errs
		}
	}
	if errs := a.checkFamilies(svc); len(errs) > 0 {
		return errs
	}
	if s.IPFamilyPolicy == nil {
		p := corev1.IPFamilyPolicySingleStack
		if isHeadless(svc) && len(s.Selector) == 0 {
			p = corev1.IPFamilyPolicyRequireDualStack
		}
		s.IPFamilyPolicy = &p
	}
	dual := *s.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack
	freeHeadless := isHeadless(svc) && len(s.Selector) == 0
	if dual && !freeHeadless && *s.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack && len(a.families) < 2 {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "ipFamilyPolicy"), *s.IPFamilyPolicy, "this cluster is not configured for dual-stack services")}
	}
	if errs := a.inferFamilies(svc); len(errs) > 0 {
		return errs
	}
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = []corev1.IPFamily{a.families[0]}
	}
	if dual && len(s.IPFamilies) == 1 && (len(a.families) == 2 || freeHeadless && *s.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack) {
		s.IPFamilies = append(s.IPFamilies, other(s.IPFamilies[0]))
	}
	if !dual && old != nil && len(s.IPFamilies) == 2 && slices.Equal(s.IPFamilies, old.Spec.IPFamilies) {
		s.IPFamilies = s.IPFamilies[:1] // the policy alone asks for one: the second family goes
		if len(s.ClusterIPs) == 2 {
			s.ClusterIPs = s.ClusterIPs[:1]
		}
	}
	return nil
}

// inferFamilies takes the families of the addresses that a client chose, which the cluster must have.
func (a *Allocator) inferFamilies(svc *corev1.Service) field.ErrorList {
	for i, ip := range svc.Spec.ClusterIPs {
		addr, err := netip.ParseAddr(ip)
		if err != nil || i != len(svc.Spec.IPFamilies) {
			continue
		}
		family := familyOf(addr)
		if !a.has(family) {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "clusterIPs").Index(i), svc.Spec.ClusterIPs, fmt.Sprintf("%s is not configured on this cluster", family))}
		}
		svc.Spec.IPFamilies = append(svc.Spec.IPFamilies, family)
	}
	return nil
}

func (a *Allocator) checkFamilies(svc *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	s := &svc.Spec
	if s.IPFamilyPolicy == nil {
		what := "IP families"
		if len(s.IPFamilies) < 2 {
			what = "cluster IPs"
		}
		if max(len(s.IPFamilies), len(s.ClusterIPs)) > 1 && !isHeadless(svc) {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "ipFamilyPolicy"), corev1.IPFamilyPolicySingleStack, "must be 'RequireDualStack' or 'PreferDualStack' when multiple "+what+" are specified")}
		}
	}
	path := field.NewPath("spec", "ipFamilies")
	for i, f := range s.IPFamilies {
		if f != corev1.IPv4Protocol && f != corev1.IPv6Protocol {
			errs = append(errs, field.NotSupported(path.Index(i), f, []string{"IPv4", "IPv6"}))
		} else if !a.has(f) && !(isHeadless(svc) && len(s.Selector) == 0) {
			errs = append(errs, field.Invalid(path.Index(i), f, "not configured on this cluster"))
		}
	}
	if len(s.IPFamilies) > 2 || len(s.IPFamilies) == 2 && s.IPFamilies[0] == s.IPFamilies[1] {
		errs = append(errs, field.Invalid(path, s.IPFamilies, "may only hold each of IPv4 and IPv6 once"))
	}
	return errs
}

func other(f corev1.IPFamily) corev1.IPFamily {
	if f == corev1.IPv4Protocol {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}
