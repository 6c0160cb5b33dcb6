package core

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidatePodTemplate checks the template of a workload.
func ValidatePodTemplate(t *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabels(t.Labels, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(t.Annotations, path.Child("annotations"))...)
	errs = append(errs, validatePodAnnotations(t.Annotations, &t.Spec, path.Child("annotations"))...)
	errs = append(errs, ValidatePodSpec(&t.Spec, path.Child("spec"))...)
	if len(t.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
	return errs
}

// ValidatePodSpec checks a spec after defaulting.
func ValidatePodSpec(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	volumes, errs := validateVolumes(s.Volumes, path.Child("volumes"))
	v := containerRules{spec: s, volumes: volumes, hostUsers: s.HostUsers == nil || *s.HostUsers}
	errs = append(errs, v.containers(s.Containers, path.Child("containers"))...)
	errs = append(errs, v.initContainers(s.InitContainers, path.Child("initContainers"))...)
	errs = append(errs, v.ephemeralContainers(s.EphemeralContainers, path.Child("ephemeralContainers"))...)
	errs = append(errs, validatePodResources(s, path.Child("resources"))...)
	errs = append(errs, oneOf(path.Child("restartPolicy"), s.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	errs = append(errs, oneOf(path.Child("dnsPolicy"), s.DNSPolicy,
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)...)
	errs = append(errs, metavalidation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector"))...)
	errs = append(errs, validatePodSecurity(s, path)...)
	errs = append(errs, validateAffinity(s.Affinity, path.Child("affinity"))...)
	errs = append(errs, validateDNSConfig(s.DNSConfig, s.DNSPolicy, path.Child("dnsConfig"))...)
	errs = append(errs, validateReadinessGates(s.ReadinessGates, path.Child("readinessGates"))...)
	errs = append(errs, validateTopologySpread(s.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))...)
	errs = append(errs, validatePodNames(s, path)...)
	errs = append(errs, validateTolerations(s.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateHostAliases(s.HostAliases, path.Child("hostAliases"))...)
	errs = append(errs, validateSchedulingGates(s.SchedulingGates, path.Child("schedulingGates"))...)
	errs = append(errs, validateOverhead(s.Overhead, path.Child("overhead"))...)
	errs = append(errs, validateOS(s, path)...)
	errs = append(errs, validatePodClaims(s.ResourceClaims, path.Child("resourceClaims"))...)
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
			errs = append(errs, invalid(at.Child("name"), c.Name, validation.IsDNS1123Label(c.Name))...)
		}
		seen.Insert(c.Name)
		switch {
		case c.ResourceClaimName == nil && c.ResourceClaimTemplateName == nil:
			errs = append(errs, field.Invalid(at, c, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"))
		case c.ResourceClaimName != nil && c.ResourceClaimTemplateName != nil:
			errs = append(errs, field.Invalid(at, c, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"))
		}
	}
	return errs
}

// oneOf checks a required word.
func oneOf[T ~string](path *field.Path, value T, valid ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return oneOfOrEmpty(path, value, valid...)
}

// oneOfOrEmpty checks a word that may be left out.
func oneOfOrEmpty[T ~string](path *field.Path, value T, valid ...T) field.ErrorList {
	if value == "" {
		return nil
	}
	for _, v := range valid {
		if v == value {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, valid)}
}

// invalid turns the messages of a check into errors.
func invalid(path *field.Path, value any, msgs []string) field.ErrorList {
	var errs field.ErrorList
	for _, m := range msgs {
		errs = append(errs, field.Invalid(path, value, m))
	}
	return errs
}

// validatePodNames checks the fields that name other objects or the pod's host.
func validatePodNames(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := s.ServiceAccountName; n != "" {
		errs = append(errs, invalid(path.Child("serviceAccountName"), n, apivalidation.ValidateServiceAccountName(n, false))...)
	}
	if n := s.NodeName; n != "" {
		errs = append(errs, invalid(path.Child("nodeName"), n, apivalidation.NameIsDNSSubdomain(n, false))...)
	}
	if d := s.ActiveDeadlineSeconds; d != nil && (*d < 1 || *d > math.MaxInt32) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *d, validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	if n := s.Hostname; n != "" {
		errs = append(errs, invalid(path.Child("hostname"), n, validation.IsDNS1123Label(n))...)
	}
	if n := s.HostnameOverride; n != nil && *n != "" {
		errs = append(errs, invalid(path.Child("hostnameOverride"), *n, validation.IsDNS1123Subdomain(*n))...)
		if len(*n) > 64 {
			errs = append(errs, field.TooLong(path.Child("hostnameOverride"), *n, 64))
		}
		if s.HostNetwork {
			errs = append(errs, field.Forbidden(path.Child("hostnameOverride"), "may not be specified when hostNetwork is true"))
		}
		if s.SetHostnameAsFQDN != nil && *s.SetHostnameAsFQDN {
			errs = append(errs, field.Forbidden(path.Child("hostnameOverride"), "may not be specified when setHostnameAsFQDN is true"))
		}
	}
	if n := s.Subdomain; n != "" {
		errs = append(errs, invalid(path.Child("subdomain"), n, validation.IsDNS1123Label(n))...)
	}
	if n := s.PriorityClassName; n != "" {
		errs = append(errs, invalid(path.Child("priorityClassName"), n, apivalidation.NameIsDNSSubdomain(n, false))...)
	}
	if n := s.RuntimeClassName; n != nil {
		errs = append(errs, invalid(path.Child("runtimeClassName"), *n, apivalidation.NameIsDNSSubdomain(*n, false))...)
	}
	if p := s.PreemptionPolicy; p != nil {
		errs = append(errs, oneOf(path.Child("preemptionPolicy"), *p, corev1.PreemptLowerPriority, corev1.PreemptNever)...)
	}
	return errs
}

func validateReadinessGates(gates []corev1.PodReadinessGate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, g := range gates {
		errs = append(errs, validateQualifiedName(string(g.ConditionType), path.Index(i).Child("conditionType"))...)
	}
	return errs
}

func validateSchedulingGates(gates []corev1.PodSchedulingGate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, g := range gates {
		errs = append(errs, validateQualifiedName(g.Name, path.Index(i))...)
		if seen.Has(g.Name) {
			errs = append(errs, field.Duplicate(path.Index(i), g.Name))
		}
		seen.Insert(g.Name)
	}
	return errs
}

// validateQualifiedName checks a name with an optional domain: "example.com/ready".
func validateQualifiedName(name string, path *field.Path) field.ErrorList {
	return invalid(path, name, validation.IsQualifiedName(name))
}

func validateHostAliases(aliases []corev1.HostAlias, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, a := range aliases {
		errs = append(errs, validation.IsValidIPForLegacyField(path.Index(i).Child("ip"), a.IP, true, nil)...)
		for j, h := range a.Hostnames {
			errs = append(errs, invalid(path.Index(i).Child("hostnames").Index(j), h, validation.IsDNS1123Subdomain(h))...)
		}
	}
	return errs
}

func validateOverhead(list corev1.ResourceList, path *field.Path) field.ErrorList {
	return validateRequirements(&corev1.ResourceRequirements{Limits: list}, path)
}

// Bounds of what a pod may add to resolv.conf.
const (
	maxNameservers     = 3
	maxSearchPaths     = 32
	maxSearchListChars = 2048
)

func validateDNSConfig(c *corev1.PodDNSConfig, policy corev1.DNSPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if policy == corev1.DNSNone {
		if c == nil {
			return field.ErrorList{field.Required(path, fmt.Sprintf("must provide `dnsConfig` when `dnsPolicy` is %s", policy))}
		}
		if len(c.Nameservers) == 0 {
			return field.ErrorList{field.Required(path.Child("nameservers"), fmt.Sprintf("must provide at least one DNS nameserver when `dnsPolicy` is %s", policy))}
		}
	}
	if c == nil {
		return nil
	}
	if len(c.Nameservers) > maxNameservers {
		errs = append(errs, field.Invalid(path.Child("nameservers"), c.Nameservers, fmt.Sprintf("must not have more than %v nameservers", maxNameservers)))
	}
	for i, ns := range c.Nameservers {
		errs = append(errs, validation.IsValidIPForLegacyField(path.Child("nameservers").Index(i), ns, true, nil)...)
	}
	if len(c.Searches) > maxSearchPaths {
		errs = append(errs, field.Invalid(path.Child("searches"), c.Searches, fmt.Sprintf("must not have more than %v search paths", maxSearchPaths)))
	}
	if n := len(strings.Join(c.Searches, " ")); n > maxSearchListChars {
		errs = append(errs, field.Invalid(path.Child("searches"), c.Searches, fmt.Sprintf("must not have more than %v characters (including spaces) in the search list", maxSearchListChars)))
	}
	for i, search := range c.Searches {
		if search == "." {
			continue
		}
		search = strings.TrimSuffix(search, ".")
		errs = append(errs, invalid(path.Child("searches").Index(i), search, validation.IsDNS1123SubdomainWithUnderscore(search))...)
	}
	for i, o := range c.Options {
		if o.Name == "" {
			errs = append(errs, field.Required(path.Child("options").Index(i), "must not be empty"))
		}
	}
	return errs
}

// ValidateSelector checks a workload's label selector.
func ValidateSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, path)
}
