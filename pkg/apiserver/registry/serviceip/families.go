package serviceip

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/core"
)

// setFamilies fills in ipFamilyPolicy and ipFamilies (KEP-563), and both ways of writing cluster IPs. Single stack is
// the default; a headless service without selector is both, as its endpoints may be: of that one no family need be the
// cluster's.
func (a *Allocator) setFamilies(svc, old *corev1.Service) field.ErrorList {
	s := &svc.Spec
	if s.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	if s.ClusterIPs == nil && s.ClusterIP != "" {
		s.ClusterIPs = []string{s.ClusterIP}
	}
	if old == nil || s.ClusterIP != "" { // an update may leave out an address that it gives back
		var had []string
		if old != nil {
			had = old.Spec.ClusterIPs
		}
		if errs := core.ValidateClusterIPs(s, had, field.NewPath("spec")); len(errs) > 0 {
			return errs
		}
	}
	anyFamily := isHeadless(svc) && len(s.Selector) == 0
	if s.IPFamilyPolicy == nil {
		s.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
		if anyFamily {
			s.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
		}
	}
	dual := *s.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack
	if old != nil {
		if errs := releaseSecond(svc, old, dual); len(errs) > 0 {
			return errs
		}
	}
	if errs := a.checkPolicy(svc, dual, anyFamily); len(errs) > 0 {
		return errs
	}
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = []corev1.IPFamily{a.families[0]}
	}
	if dual && len(s.IPFamilies) == 1 && (len(a.families) == 2 || anyFamily) {
		s.IPFamilies = append(s.IPFamilies, other(s.IPFamilies[0]))
	}
	return nil
}

// releaseSecond lets the second family and address go where the policy alone asks for one; they go in no other way.
func releaseSecond(svc, old *corev1.Service, dual bool) field.ErrorList {
	s, was := &svc.Spec, &old.Spec
	if !dual {
		if len(s.IPFamilies) == 2 && slices.Equal(s.IPFamilies, was.IPFamilies) {
			s.IPFamilies = s.IPFamilies[:1]
		}
		if len(s.ClusterIPs) == 2 && slices.Equal(s.ClusterIPs, was.ClusterIPs) {
			s.ClusterIPs = s.ClusterIPs[:1]
		}
		return nil
	}
	var errs field.ErrorList
	refuse := func(what string) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "ipFamilyPolicy"), *s.IPFamilyPolicy,
			"must be 'SingleStack' to release the secondary "+what))
	}
	if len(was.ClusterIPs) == 2 && len(s.ClusterIPs) == 1 {
		refuse("cluster IP")
	}
	if len(was.IPFamilies) == 2 && len(s.IPFamilies) == 1 {
		refuse("IP family")
	}
	return errs
}

// checkPolicy compares what a service asks for with its policy and with the cluster's families, and takes the families
// of the addresses that a client chose.
func (a *Allocator) checkPolicy(svc *corev1.Service, dual, anyFamily bool) field.ErrorList {
	s := &svc.Spec
	path := field.NewPath("spec")
	policy := path.Child("ipFamilyPolicy")
	if !dual && len(s.IPFamilies) > 1 {
		return field.ErrorList{field.Invalid(policy, *s.IPFamilyPolicy,
			"must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified")}
	}
	var errs field.ErrorList
	if !dual && len(s.ClusterIPs) > 1 {
		errs = append(errs, field.Invalid(policy, *s.IPFamilyPolicy,
			"must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"))
	}
	given := len(s.IPFamilies)
	if err := a.inferFamilies(svc); err != nil {
		return append(errs, err)
	}
	if len(errs) > 0 || anyFamily {
		return errs
	}
	if *s.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack && len(a.families) < 2 {
		errs = append(errs, field.Invalid(policy, *s.IPFamilyPolicy,
			"this cluster is not configured for dual-stack services"))
	}
	for i, f := range s.IPFamilies[:given] {
		if !a.has(f) {
			errs = append(errs, field.Invalid(path.Child("ipFamilies").Index(i), f, "not configured on this cluster"))
		}
	}
	return errs
}

// inferFamilies takes the families of the addresses that a client chose, which the cluster must have.
func (a *Allocator) inferFamilies(svc *corev1.Service) *field.Error {
	for i, ip := range svc.Spec.ClusterIPs {
		addr, err := netip.ParseAddr(ip)
		if err != nil || i != len(svc.Spec.IPFamilies) {
			continue
		}
		family := familyOf(addr)
		if !a.has(family) {
			return field.Invalid(field.NewPath("spec", "clusterIPs").Index(i), svc.Spec.ClusterIPs,
				fmt.Sprintf("%s is not configured on this cluster", family))
		}
		svc.Spec.IPFamilies = append(svc.Spec.IPFamilies, family)
	}
	return nil
}

func other(f corev1.IPFamily) corev1.IPFamily {
	if f == corev1.IPv4Protocol {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}
