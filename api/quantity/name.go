// Package quantity holds the rules of amounts of resources: which names there are, what each may be, and how amounts
// are kept.
package quantity

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// ValidateName checks that a name is qualified, or that of a standard resource.
func ValidateName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	s := string(name)
	errs := validate.Invalid(path, name, validation.IsQualifiedName(s))
	if len(errs) > 0 {
		return errs
	}
	if !strings.Contains(s, "/") && !isStandardResource(name) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource type or fully qualified"))
	}
	return errs
}

// isStandardResource reports whether an unqualified name means something to any kind: containers, quotas or limits.
func isStandardResource(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourceStorage,
		corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
		corev1.ResourceSecrets, corev1.ResourcePersistentVolumeClaims, corev1.ResourceConfigMaps,
		corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsStorage,
		corev1.ResourceRequestsEphemeralStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage:
		return true
	}
	return IsHugePage(name) || strings.HasPrefix(string(name), "requests."+corev1.ResourceHugePagesPrefix)
}

// IsQuota reports whether a quota can bound an unqualified resource.
func IsQuota(name corev1.ResourceName) bool {
	return isStandardResource(name) && name != corev1.ResourceStorage
}

// IsHugePage reports whether a resource is huge pages of some size.
func IsHugePage(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// IsNative reports whether a resource is Kubernetes' own: without a domain, or of kubernetes.io.
func IsNative(name corev1.ResourceName) bool {
	s := string(name)
	return !strings.Contains(s, "/") || strings.Contains(s, corev1.ResourceDefaultNamespacePrefix)
}

// IsExtended reports whether a resource is of a foreign domain, with room for the "requests." that quotas put before
// it.
func IsExtended(name corev1.ResourceName) bool {
	if IsNative(name) || strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// isCounted reports whether there are only whole ones of a resource.
func isCounted(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
		corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
		corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers:
		return true
	}
	return IsExtended(name)
}
