// Package podspec holds what a pod and a pod template are made of, as pure functions: defaults, validation and warnings
// of containers, probes, mounts, resources, security, affinity, tolerations and the rest, for every kind that has a
// template. The packages of the groups (core, apps) have the kinds, with their rows, strategies, columns and status.
//
// Volumes and claims (package volumes), which persistent volumes share, fields that containers and volumes can read of
// their pod (downward) and image names (image) are packages below.
package podspec

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec/volumes"
	"bonsai/api/validate"
)

// Validate checks a pod's spec after defaulting.
func Validate(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	return validateSpec(s, true, path)
}

// validateSpec is Validate of a pod's spec or of a template's, which may have images with space around them: no pod is
// made from it.
func validateSpec(s *corev1.PodSpec, pod bool, path *field.Path) field.ErrorList {
	volumes, errs := volumes.Validate(s.Volumes, path.Child("volumes"))
	v := containerRules{spec: s, volumes: volumes, hostUsers: s.HostUsers == nil || *s.HostUsers, pod: pod}
	errs = append(errs, v.containers(s.Containers, path.Child("containers"))...)
	errs = append(errs, v.initContainers(s.InitContainers, path.Child("initContainers"))...)
	errs = append(errs, v.ephemeralContainers(s.EphemeralContainers, path.Child("ephemeralContainers"))...)
	errs = append(errs, validatePodResources(s, path.Child("resources"))...)
	errs = append(errs, validate.OneOf(path.Child("restartPolicy"), s.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	errs = append(errs, validate.OneOf(path.Child("dnsPolicy"), s.DNSPolicy,
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)...)
	errs = append(errs, metavalidation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector"))...)
	errs = append(errs, validatePodSecurity(s, path)...)
	errs = append(errs, validateAffinity(s.Affinity, path.Child("affinity"))...)
	errs = append(errs, validateDNSConfig(s.DNSConfig, s.DNSPolicy, path.Child("dnsConfig"))...)
	errs = append(errs, validateReadinessGates(s.ReadinessGates, path.Child("readinessGates"))...)
	errs = append(errs, validateTopologySpread(s.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))...)
	errs = append(errs, validatePodNames(s, path)...)
	errs = append(errs, ValidateTolerations(s.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateHostAliases(s.HostAliases, path.Child("hostAliases"))...)
	errs = append(errs, validateSchedulingGates(s.SchedulingGates, path.Child("schedulingGates"))...)
	errs = append(errs, ValidateOverhead(s.Overhead, path.Child("overhead"))...)
	errs = append(errs, validateOS(s, path)...)
	errs = append(errs, validatePodClaims(s.ResourceClaims, path.Child("resourceClaims"))...)
	errs = append(errs, validateFileKeyVolumes(s, path)...)
	return errs
}

// validatePodClaims: a claim on devices names a claim or a template, and is named itself.
func validatePodClaims(claims []corev1.PodResourceClaim, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, c := range claims {
		at := path.Index(i)
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(at.Child("name"), ""))
		case seen.Has(c.Name):
			errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
		default:
			errs = append(errs, validate.Invalid(at.Child("name"), c.Name, validation.IsDNS1123Label(c.Name))...)
		}
		seen.Insert(c.Name)
		switch {
		case c.ResourceClaimName == nil && c.ResourceClaimTemplateName == nil:
			errs = append(errs, field.Invalid(at, c,
				"must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"))
		case c.ResourceClaimName != nil && c.ResourceClaimTemplateName != nil:
			errs = append(errs, field.Invalid(at, c,
				"at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"))
		}
	}
	return errs
}

// validatePodNames checks the fields that name other objects or the pod's host.
func validatePodNames(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := s.ServiceAccountName; n != "" {
		errs = append(errs, validate.Invalid(path.Child("serviceAccountName"), n,
			apivalidation.ValidateServiceAccountName(n, false))...)
	}
	if n := s.NodeName; n != "" {
		errs = append(errs, validate.Invalid(path.Child("nodeName"), n, apivalidation.NameIsDNSSubdomain(n, false))...)
	}
	if d := s.ActiveDeadlineSeconds; d != nil && (*d < 1 || *d > math.MaxInt32) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *d,
			validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	if n := s.Hostname; n != "" {
		errs = append(errs, validate.Invalid(path.Child("hostname"), n, validation.IsDNS1123Label(n))...)
	}
	if n := s.HostnameOverride; n != nil && *n != "" {
		errs = append(errs, validate.Invalid(path.Child("hostnameOverride"), *n, validation.IsDNS1123Subdomain(*n))...)
		if len(*n) > 64 {
			errs = append(errs, field.TooLong(path.Child("hostnameOverride"), *n, 64))
		}
		if s.HostNetwork {
			errs = append(errs, field.Forbidden(path.Child("hostnameOverride"),
				"may not be specified when hostNetwork is true"))
		}
		if s.SetHostnameAsFQDN != nil && *s.SetHostnameAsFQDN {
			errs = append(errs, field.Forbidden(path.Child("hostnameOverride"),
				"may not be specified when setHostnameAsFQDN is true"))
		}
	}
	if n := s.Subdomain; n != "" {
		errs = append(errs, validate.Invalid(path.Child("subdomain"), n, validation.IsDNS1123Label(n))...)
	}
	if n := s.PriorityClassName; n != "" {
		errs = append(errs, validate.Invalid(path.Child("priorityClassName"), n,
			apivalidation.NameIsDNSSubdomain(n, false))...)
	}
	if n := s.RuntimeClassName; n != nil {
		errs = append(errs, validate.Invalid(path.Child("runtimeClassName"), *n,
			apivalidation.NameIsDNSSubdomain(*n, false))...)
	}
	if p := s.PreemptionPolicy; p != nil {
		errs = append(errs, validate.OneOf(path.Child("preemptionPolicy"), *p, corev1.PreemptLowerPriority,
			corev1.PreemptNever)...)
	}
	return errs
}

func validateReadinessGates(gates []corev1.PodReadinessGate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, g := range gates {
		errs = append(errs, validate.QualifiedName(string(g.ConditionType), path.Index(i).Child("conditionType"))...)
	}
	return errs
}

func validateSchedulingGates(gates []corev1.PodSchedulingGate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, g := range gates {
		errs = append(errs, validate.QualifiedName(g.Name, path.Index(i))...)
		if seen.Has(g.Name) {
			errs = append(errs, field.Duplicate(path.Index(i), g.Name))
		}
		seen.Insert(g.Name)
	}
	return errs
}

func validateHostAliases(aliases []corev1.HostAlias, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, a := range aliases {
		errs = append(errs, validation.IsValidIPForLegacyField(path.Index(i).Child("ip"), a.IP, true, nil)...)
		for j, h := range a.Hostnames {
			errs = append(errs, validate.Invalid(path.Index(i).Child("hostnames").Index(j), h,
				validation.IsDNS1123Subdomain(h))...)
		}
	}
	return errs
}

// ValidateOverhead checks what a pod takes beyond its containers; errors name it as limits, as upstream has it.
func ValidateOverhead(list corev1.ResourceList, path *field.Path) field.ErrorList {
	return validateRequirements(&corev1.ResourceRequirements{Limits: list}, path)
}
